//! The values of a column: levels, dictionary and plain values, and runs of indices.
//!
//! Decoded here rather than by the `parquet` crate, whose decoders take for granted that pages are whole: one changed
//! byte makes them panic.

use bytes::Bytes;

use crate::pages::{ColumnFault, Pages, damaged};
use crate::thrift::{DATA, DICTIONARY, PageHead};

const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE: i64 = 3;
const RLE_DICTIONARY: i64 = 8;

/// A kind of value as it stands in a page.
pub(crate) trait Value: Clone {
    /// The fewest bytes that one takes.
    const SHORTEST: usize;

    /// Takes a value from the front of some bytes.
    fn plain(bytes: &mut Bytes) -> Option<Self>;
}

impl Value for i64 {
    const SHORTEST: usize = 8;

    fn plain(bytes: &mut Bytes) -> Option<Self> {
        let number = Self::from_le_bytes(*bytes.first_chunk()?);
        drop(bytes.split_to(8));
        Some(number)
    }
}

/// Text, not looked at yet.
impl Value for Bytes {
    const SHORTEST: usize = 4;

    fn plain(bytes: &mut Bytes) -> Option<Self> {
        let length = usize::try_from(u32::from_le_bytes(*bytes.first_chunk()?)).ok()?;
        let end = length.checked_add(4).filter(|end| *end <= bytes.len())?;
        Some(bytes.split_to(end).slice(4..))
    }
}

/// A column at a row.
#[derive(Debug)]
pub(crate) struct Column<V> {
    pages: Pages,
    /// A dictionary that no page has needed yet.
    deferred: Option<(PageHead, u64)>,
    dictionary: Option<Vec<V>>,
    page: Option<Page>,
}

/// A page, from its next row on.
#[derive(Debug)]
struct Page {
    rows: u64,
    /// 1 for each row with a value, 0 for each that is null.
    levels: Runs,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Plain(Bytes),
    Indices(Runs),
}

impl<V: Value> Column<V> {
    pub(crate) fn new(pages: Pages) -> Self {
        Self { pages, deferred: None, dictionary: None, page: None }
    }

    /// Passes over rows, without unpacking the pages that hold only such.
    pub(crate) fn skip(&mut self, mut rows: u64) -> Result<(), ColumnFault> {
        while rows > 0 {
            if let Some(page) = &mut self.page {
                if page.rows > 0 {
                    page.next::<V>(self.dictionary.as_deref())?;
                    rows -= 1;
                    continue;
                }
                self.page = None;
            }
            let (head, body) = self.next_data()?;
            match u64::try_from(head.values) {
                Ok(values) if values <= rows => rows -= values,
                _ => self.page = Some(self.open(&(head, body))?),
            }
        }
        Ok(())
    }

    /// The value of the next row; `None` where it is null.
    pub(crate) fn next(&mut self) -> Result<Option<V>, ColumnFault> {
        loop {
            if let Some(page) = self.page.as_mut().filter(|page| page.rows > 0) {
                return page.next(self.dictionary.as_deref());
            }
            let place = self.next_data()?;
            self.page = Some(self.open(&place)?);
        }
    }

    /// The next page of data; a dictionary before it is kept for later.
    fn next_data(&mut self) -> Result<(PageHead, u64), ColumnFault> {
        loop {
            match self.pages.next_head()? {
                None => return damaged("ends before its last row"),
                Some(place) if place.0.kind != DICTIONARY => return Ok(place),
                Some(_) if self.deferred.is_some() || self.dictionary.is_some() => {
                    return damaged("has two dictionaries");
                }
                Some(place) => self.deferred = Some(place),
            }
        }
    }

    fn open(&mut self, place: &(PageHead, u64)) -> Result<Page, ColumnFault> {
        let head = place.0;
        let mut body = self.pages.body(place)?;
        let levels = if head.kind == DATA {
            if head.definition_encoding != RLE {
                return Err(ColumnFault::Unread("has levels in a form that was given up in 2013".to_owned()));
            }
            Bytes::plain(&mut body)
        } else {
            let length = usize::try_from(head.definition_bytes).unwrap_or(usize::MAX);
            // A flat column has no levels of repetition; `check` of the pages has seen that both fit.
            (head.repetition_bytes == 0 && length <= body.len()).then(|| body.split_to(length))
        };
        let Some(levels) = levels else { return damaged("has a page whose levels are longer than itself") };
        let values = match head.encoding {
            PLAIN => Values::Plain(body),
            PLAIN_DICTIONARY | RLE_DICTIONARY => {
                if let Some(place) = self.deferred.take() {
                    self.dictionary = Some(self.read_dictionary(&place)?);
                }
                if body.is_empty() {
                    // A page of nulls only.
                    Values::Plain(body)
                } else {
                    let width = u32::from(body.split_to(1)[0]);
                    if width > 32 {
                        return damaged(format!("has indices of {width} bits"));
                    }
                    Values::Indices(Runs::new(body, width))
                }
            }
            other => return Err(ColumnFault::Unread(format!("has values encoded as {}", encoding(other)))),
        };
        let rows = u64::try_from(head.values).unwrap_or(0);
        Ok(Page { rows, levels: Runs::new(levels, 1), values })
    }

    fn read_dictionary(&self, place: &(PageHead, u64)) -> Result<Vec<V>, ColumnFault> {
        let head = place.0;
        if head.encoding != PLAIN && head.encoding != PLAIN_DICTIONARY {
            return damaged("has a dictionary that is not plain");
        }
        let mut body = self.pages.body(place)?;
        let count = usize::try_from(head.values).unwrap_or(usize::MAX);
        if count > body.len() / V::SHORTEST {
            return damaged(format!("has a dictionary too short for {count} values"));
        }
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            match V::plain(&mut body) {
                Some(value) => values.push(value),
                None => return damaged("has a dictionary that ends within a value"),
            }
        }
        Ok(values)
    }
}

impl Page {
    fn next<V: Value>(&mut self, dictionary: Option<&[V]>) -> Result<Option<V>, ColumnFault> {
        self.rows = self.rows.saturating_sub(1);
        match self.levels.next() {
            None => return damaged("has a page with fewer levels than rows"),
            Some(0) => return Ok(None),
            Some(_) => {}
        }
        let value = match &mut self.values {
            Values::Plain(bytes) => V::plain(bytes),
            Values::Indices(runs) => {
                runs.next().and_then(|index| dictionary?.get(usize::try_from(index).ok()?)).cloned()
            }
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => damaged("has a page that ends before its last value"),
        }
    }
}

/// Numbers of a fixed width of bits: runs of one number, and groups of eight side by side.
#[derive(Debug)]
struct Runs {
    bytes: Bytes,
    width: u32,
    run: Run,
}

#[derive(Debug)]
enum Run {
    Same {
        value: u32,
        left: u64,
    },
    /// Packed numbers, from a bit on.
    Packed {
        bytes: Bytes,
        bit: usize,
        left: u64,
    },
}

impl Runs {
    fn new(bytes: Bytes, width: u32) -> Self {
        Self { bytes, width, run: Run::Same { value: 0, left: 0 } }
    }

    fn next(&mut self) -> Option<u32> {
        loop {
            match &mut self.run {
                Run::Same { left: 0, .. } | Run::Packed { left: 0, .. } => self.begin()?,
                Run::Same { value, left } => {
                    *left -= 1;
                    return Some(*value);
                }
                Run::Packed { bytes, bit, left } => {
                    *left -= 1;
                    let value = bits(bytes, *bit, self.width)?;
                    *bit += usize::try_from(self.width).ok()?;
                    return Some(value);
                }
            }
        }
    }

    /// Begins the next run; `None` when there is none.
    fn begin(&mut self) -> Option<()> {
        let mut head = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.first()?;
            drop(self.bytes.split_to(1));
            head |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let count = head >> 1;
        self.run = if head & 1 == 1 {
            // The last group may be cut where the numbers end.
            let length = count.saturating_mul(u64::from(self.width)).min(self.bytes.len() as u64);
            let bytes = self.bytes.split_to(usize::try_from(length).ok()?);
            Run::Packed { bytes, bit: 0, left: count.saturating_mul(8) }
        } else {
            let length = usize::try_from(self.width.div_ceil(8)).ok().filter(|length| *length <= self.bytes.len())?;
            let mut value = [0; 4];
            value[..length].copy_from_slice(&self.bytes.split_to(length));
            Run::Same { value: u32::from_le_bytes(value), left: count }
        };
        Some(())
    }
}

/// Some bits from a place on, the lowest first; `None` beyond the end.
fn bits(bytes: &[u8], bit: usize, width: u32) -> Option<u32> {
    let width = usize::try_from(width).ok()?;
    if bit.checked_add(width)? > bytes.len().checked_mul(8)? {
        return None;
    }
    // 32 bits from any bit of a byte on lie within five bytes.
    let mut window = [0_u8; 8];
    let from = bit / 8;
    let found = &bytes[from..bytes.len().min(from + 8)];
    window[..found.len()].copy_from_slice(found);
    let value = (u64::from_le_bytes(window) >> (bit % 8)) & ((1_u64 << width) - 1);
    u32::try_from(value).ok()
}

fn encoding(number: i64) -> String {
    match number {
        5 => "DELTA_BINARY_PACKED".to_owned(),
        6 => "DELTA_LENGTH_BYTE_ARRAY".to_owned(),
        7 => "DELTA_BYTE_ARRAY".to_owned(),
        9 => "BYTE_STREAM_SPLIT".to_owned(),
        other => format!("number {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(bytes: &[u8], width: u32) -> Vec<u32> {
        let mut runs = Runs::new(Bytes::copy_from_slice(bytes), width);
        std::iter::from_fn(|| runs.next()).take(100).collect()
    }

    #[test]
    fn runs_and_groups_are_read_as_the_format_has_them() {
        // The specification's example: 0 to 7 in three bits each.
        assert_eq!(numbers(&[0x03, 0x88, 0xc6, 0xfa], 3), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(numbers(&[0x06, 0x05, 0x04, 0x07], 3), [5, 5, 5, 7, 7]);
        assert_eq!(numbers(&[0x04, 0x34, 0x12], 16), [0x1234; 2]);
        assert_eq!(numbers(&[0x06], 0), [0; 3], "a dictionary of one value needs no bits");
        assert_eq!(numbers(&[0x03, 0xff, 0xff, 0xff, 0xff], 32), [u32::MAX], "cut within a group");
        assert_eq!(numbers(&[0x06, 0x05], 16), [0; 0], "cut within a number");
        assert_eq!(numbers(&[0x80; 12], 1), [0; 0], "no length at all");
    }

    #[test]
    fn numbers_of_every_width_are_found_at_every_place() {
        for width in 1..=32_u32 {
            let most = u32::MAX >> (32 - width);
            let values: Vec<u32> = (0..24_u32).map(|n| n.wrapping_mul(0x9e37_79b9) & most).collect();
            let mut packed = vec![0_u8; 3 * usize::try_from(width).unwrap()];
            for (at, value) in values.iter().enumerate() {
                for bit in 0..width {
                    let to = at * usize::try_from(width).unwrap() + usize::try_from(bit).unwrap();
                    packed[to / 8] |= u8::try_from((value >> bit) & 1).unwrap() << (to % 8);
                }
            }
            packed.insert(0, 0x07);
            assert_eq!(numbers(&packed, width), values, "{width} bits");
        }
    }

    #[test]
    fn plain_values_end_with_their_bytes() {
        let mut text = Bytes::from_static(b"\x02\0\0\0ab\0\0\0\0\xff\xff\xff\xff");
        assert_eq!(<Bytes as Value>::plain(&mut text).as_deref(), Some(&b"ab"[..]));
        assert_eq!(<Bytes as Value>::plain(&mut text).as_deref(), Some(&b""[..]));
        assert_eq!(<Bytes as Value>::plain(&mut text), None);
        assert_eq!(<i64 as Value>::plain(&mut Bytes::from_static(&[1, 0, 0, 0, 0, 0, 0, 0])), Some(1));
        assert_eq!(<i64 as Value>::plain(&mut Bytes::from_static(&[1; 7])), None);
    }
}
