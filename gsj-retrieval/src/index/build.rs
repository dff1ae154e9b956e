//! From the texts of a case's pages to the bytes of its index.

use super::layout::{Before, Counts, Layout};
use crate::text::Analyzer;
use std::collections::HashMap;
use std::ops::Range;

/// Where one unit holds a term.
#[derive(Debug, Clone, Copy)]
struct Posting {
    unit: u32,
    count: u8,
    first: u8,
}

/// The bytes of the index of these pages, each taken apart by `units`; `None` when a number grows beyond what the form
/// can hold.
pub(super) fn build<T: AsRef<str>>(pages: &[T], units: fn(&str) -> Vec<Range<usize>>) -> Option<(Vec<u8>, Layout)> {
    let mut analyzer = Analyzer::default();
    let mut terms: HashMap<Box<str>, Vec<Posting>> = HashMap::new();
    let (mut befores, mut before) = (Vec::with_capacity(pages.len() + 1), Before::default());
    let (mut ranges, mut lengths) = (Vec::new(), Vec::new());
    for page in pages.iter().map(AsRef::as_ref) {
        befores.push(before);
        for range in units(page) {
            let unit = u32::try_from(ranges.len()).ok()?;
            ranges.push([u32::try_from(range.start).ok()?, u32::try_from(range.end).ok()?]);
            let mut length = 0_u64;
            analyzer.terms(page.get(range).unwrap_or_default(), |term| {
                let first = u8::try_from(length).unwrap_or(u8::MAX);
                length += 1;
                match terms.get_mut(term) {
                    None => _ = terms.insert(term.into(), vec![Posting { unit, count: 1, first }]),
                    Some(list) => match list.last_mut().filter(|last| last.unit == unit) {
                        Some(last) => last.count = last.count.saturating_add(1),
                        None => list.push(Posting { unit, count: 1, first }),
                    },
                }
            });
            lengths.push(u16::try_from(length).unwrap_or(u16::MAX));
            before.terms += length;
        }
        before.units = ranges.len();
        before.text += page.len();
    }
    befores.push(before);
    let mut terms: Vec<(Box<str>, Vec<Posting>)> = terms.into_iter().collect();
    terms.sort_unstable_by(|a, b| a.0.cmp(&b.0));

    let counts = Counts {
        pages: pages.len(),
        units: ranges.len(),
        terms: terms.len(),
        postings: terms.iter().map(|(_, list)| list.len()).sum(),
        names: terms.iter().map(|(name, _)| name.len()).sum(),
        text: before.text,
    };
    u32::try_from(counts.postings.max(counts.names)).ok()?;
    let layout = Layout::of(counts)?;
    let mut bytes = Vec::with_capacity(layout.size());
    bytes.extend(Layout::header(counts));
    part(&mut bytes, befores.iter().map(|before| before.write()));
    part(&mut bytes, ranges.iter().flatten().map(|end| end.to_le_bytes()));
    part(&mut bytes, lengths.iter().map(|length| length.to_le_bytes()));
    let (mut name, mut posting) = (0_u32, 0_u32);
    part(
        &mut bytes,
        terms.iter().map(|(text, list)| (text.len(), list.len())).chain([(0, 0)]).flat_map(|(letters, held)| {
            let entry = [name, posting].map(u32::to_le_bytes);
            // Both sums were seen to fit.
            name = name.wrapping_add(letters as u32);
            posting = posting.wrapping_add(held as u32);
            entry
        }),
    );
    part(&mut bytes, terms.iter().flat_map(|(text, _)| text.bytes().map(|byte| [byte])));
    part(&mut bytes, terms.iter().flat_map(|(_, list)| list).map(|posting| posting.unit.to_le_bytes()));
    part(&mut bytes, terms.iter().flat_map(|(_, list)| list).map(|posting| [posting.count, posting.first]));
    for page in pages {
        bytes.extend_from_slice(page.as_ref().as_bytes());
    }
    bytes.resize(layout.size(), 0);
    Some((bytes, layout))
}

/// Appends entries, and zeros up to the next multiple of eight.
fn part<const N: usize>(bytes: &mut Vec<u8>, entries: impl Iterator<Item = [u8; N]>) {
    bytes.extend(entries.flatten());
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}
