//! The head of a page, which is Thrift in the compact protocol.
//!
//! Read here rather than by the `parquet` crate: what stands before a page decides how much is allocated for it, and
//! a head of a few bytes can ask for gigabytes or for an index out of bounds.

/// Deepest nesting that is skipped; statistics, the only nested part, have one level.
const DEEPEST: u32 = 8;

/// What stands before a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PageHead {
    pub(crate) kind: i64,
    pub(crate) uncompressed: i64,
    pub(crate) compressed: i64,
    pub(crate) values: i64,
    pub(crate) nulls: i64,
    pub(crate) encoding: i64,
    pub(crate) definition_encoding: i64,
    pub(crate) definition_bytes: i64,
    pub(crate) repetition_bytes: i64,
    pub(crate) is_compressed: bool,
}

/// Data page of the first form.
pub(crate) const DATA: i64 = 0;
/// Index page, which nobody writes.
pub(crate) const INDEX: i64 = 1;
/// Dictionary page.
pub(crate) const DICTIONARY: i64 = 2;
/// Data page of the second form.
pub(crate) const DATA_V2: i64 = 3;

/// Why a head could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The bytes end within it.
    Short,
    /// It is none.
    Malformed,
}

/// Reads a head from the front of some bytes; gives it and how many bytes it takes.
pub(crate) fn page_head(bytes: &[u8]) -> Result<(PageHead, usize), Fault> {
    let mut input = Input { bytes, at: 0 };
    let mut head = PageHead { kind: -1, uncompressed: -1, compressed: -1, is_compressed: true, ..PageHead::default() };
    input.fields(|input, field, kind| {
        match field {
            1 => head.kind = input.integer(kind)?,
            2 => head.uncompressed = input.integer(kind)?,
            3 => head.compressed = input.integer(kind)?,
            5 | 7 | 8 if kind == STRUCT => {
                head.values = -1;
                input.fields(|input, inner, kind| {
                    match (field, inner) {
                        (_, 1) => head.values = input.integer(kind)?,
                        (5 | 7, 2) | (8, 4) => head.encoding = input.integer(kind)?,
                        (5, 3) => head.definition_encoding = input.integer(kind)?,
                        (8, 2) => head.nulls = input.integer(kind)?,
                        (8, 5) => head.definition_bytes = input.integer(kind)?,
                        (8, 6) => head.repetition_bytes = input.integer(kind)?,
                        (8, 7) if kind == TRUE || kind == FALSE => head.is_compressed = kind == TRUE,
                        _ => input.skip(kind, 0)?,
                    }
                    Ok(())
                })?;
            }
            _ => input.skip(kind, 0)?,
        }
        Ok(())
    })?;
    Ok((head, input.at))
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const STRUCT: u8 = 12;

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn byte(&mut self) -> Result<u8, Fault> {
        let byte = *self.bytes.get(self.at).ok_or(Fault::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Fault::Malformed)
    }

    fn zigzag(&mut self) -> Result<i64, Fault> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// An integer of 16, 32 or 64 bits, which are written alike.
    fn integer(&mut self, kind: u8) -> Result<i64, Fault> {
        if (4..=6).contains(&kind) { self.zigzag() } else { Err(Fault::Malformed) }
    }

    fn pass(&mut self, length: u64) -> Result<(), Fault> {
        let length = usize::try_from(length).map_err(|_| Fault::Malformed)?;
        let end = self.at.checked_add(length).ok_or(Fault::Malformed)?;
        if end > self.bytes.len() {
            return Err(Fault::Short);
        }
        self.at = end;
        Ok(())
    }

    /// Reads the fields of a struct; `each` gets a field's number and kind and reads its value.
    fn fields(&mut self, mut each: impl FnMut(&mut Self, i64, u8) -> Result<(), Fault>) -> Result<(), Fault> {
        let mut field = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let step = i64::from(head >> 4);
            field = if step == 0 { self.zigzag()? } else { field.saturating_add(step) };
            each(self, field, head & 0x0f)?;
        }
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), Fault> {
        if depth > DEEPEST {
            return Err(Fault::Malformed);
        }
        match kind {
            TRUE | FALSE => Ok(()),
            3 => self.pass(1),
            4..=6 => self.zigzag().map(drop),
            7 => self.pass(8),
            8 => {
                let length = self.varint()?;
                self.pass(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let (short, inner) = (head >> 4, head & 0x0f);
                let count = if short == 15 { self.varint()? } else { u64::from(short) };
                // In a list, unlike in a struct, a truth value takes a byte, so every element moves on.
                let inner = if inner == TRUE || inner == FALSE { 3 } else { inner };
                for _ in 0..count {
                    self.skip(inner, depth + 1)?;
                }
                Ok(())
            }
            STRUCT => self.fields(|input, _, kind| input.skip(kind, depth + 1)),
            _ => Err(Fault::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data page as pyarrow writes it: 12 values, with statistics that are passed over.
    const HEAD: &[u8] = &[
        0x15, 0x00, 0x15, 0x20, 0x15, 0x24, 0x2c, 0x15, 0x18, 0x15, 0x10, 0x15, 0x06, 0x15, 0x06, 0x1c, 0x18, 0x01,
        b'a', 0x18, 0x01, b'b', 0x00, 0x00, 0x00, 0xff,
    ];

    #[test]
    fn a_head_is_read_to_its_end() {
        let (head, length) = page_head(HEAD).unwrap();
        assert_eq!(length, HEAD.len() - 1);
        let wanted = PageHead {
            kind: DATA,
            uncompressed: 16,
            compressed: 18,
            values: 12,
            encoding: 8,
            definition_encoding: 3,
            is_compressed: true,
            ..PageHead::default()
        };
        assert_eq!(head, wanted);
    }

    #[test]
    fn a_cut_head_is_short_and_an_endless_one_malformed() {
        for end in 0..HEAD.len() - 2 {
            assert_eq!(page_head(&HEAD[..end]), Err(Fault::Short), "cut at {end}");
        }
        assert_eq!(
            page_head(&[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            Err(Fault::Malformed)
        );
        assert_eq!(page_head(&[0x9c; 64]), Err(Fault::Malformed), "nested without an end");
        assert_eq!(
            page_head(&[0x98, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            Err(Fault::Short),
            "a text longer than all there is"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_read_beyond_their_end(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            if let Ok((_, length)) = page_head(&bytes) {
                assert!(length <= bytes.len());
            }
        }
    }
}
