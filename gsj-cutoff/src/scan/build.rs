//! Taking the fingerprints of pages.

use super::search::{Collector, Index, refold, search};
use super::{Fingerprints, LONGEST_SENTENCE, RUN, SHORTEST_SENTENCE};

pub(super) fn fingerprints<L, V>(
    later: impl IntoIterator<Item = (u32, L)>,
    visible: impl IntoIterator<Item = V>,
) -> Fingerprints
where
    L: AsRef<[u8]>,
    V: AsRef<[u8]>,
{
    let mut later: Vec<(u32, L)> = later.into_iter().collect();
    later.sort_by_key(|(page, _)| *page);
    let visible: Vec<V> = visible.into_iter().collect();

    let mut runs = Collector::new();
    for (page, text) in &later {
        runs.runs(*page, text.as_ref(), RUN);
    }
    let mut prints = Fingerprints { runs: runs.finish(RUN), sentences: Index::default() };
    let mut dead = vec![false; prints.runs.len()];
    for text in &visible {
        search(text.as_ref(), &prints.runs, &Index::default(), 0, |found| dead[found.print] = true);
    }
    prints.runs.remove(&dead, RUN);

    let mut sentences = Collector::new();
    for (page, text) in &later {
        for sentence in sentences_and_lines(text.as_ref()) {
            // A sentence with a run of its own is found by that already.
            if fits(sentence) && prints.scan(sentence).is_empty() {
                sentences.whole(*page, sentence);
            }
        }
    }
    prints.sentences = sentences.finish(SHORTEST_SENTENCE);
    let mut dead = vec![false; prints.sentences.len()];
    for text in &visible {
        search(text.as_ref(), &Index::default(), &prints.sentences, 0, |found| dead[found.print] = true);
    }
    prints.sentences.remove(&dead, SHORTEST_SENTENCE);
    prints
}

fn fits(sentence: &[u8]) -> bool {
    let mut folded = Vec::new();
    refold(sentence, &mut folded);
    let words = folded.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).count();
    (SHORTEST_SENTENCE..=LONGEST_SENTENCE).contains(&words)
}

/// What a reader may take for a line or sentence: everything from the start of one to the next end of one.
///
/// A sentence ends with a full stop, question or exclamation mark before white space, or with its paragraph; it goes on
/// over a line break.
fn sentences_and_lines(text: &[u8]) -> Vec<&[u8]> {
    let (mut starts, mut sentence_ends, mut line_ends) = (vec![0], Vec::new(), Vec::new());
    let mut blank = false;
    for (at, byte) in text.iter().enumerate() {
        let space = text.get(at + 1).is_none_or(u8::is_ascii_whitespace);
        match byte {
            b'.' | b'!' | b'?' if space => {
                sentence_ends.push(at + 1);
                starts.push(at + 1);
            }
            b'\n' => {
                line_ends.push(at);
                if blank {
                    sentence_ends.push(at);
                }
                starts.push(at + 1);
            }
            _ => {}
        }
        blank = *byte == b'\n' || blank && byte.is_ascii_whitespace();
    }
    line_ends.push(text.len());
    sentence_ends.push(text.len());
    let mut parts = Vec::new();
    for start in starts {
        for ends in [&sentence_ends, &line_ends] {
            let end = ends[ends.partition_point(|end| *end <= start)..].first();
            parts.extend(end.map(|end| &text[start..*end]));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_at_marks_and_paragraphs_and_lines_are_taken_too() {
        let text = b"# Head\n\nOne two. Three\nfour! No. 5.1 ends\n\nlast";
        let parts: Vec<_> = sentences_and_lines(text).into_iter().map(String::from_utf8_lossy).collect();
        for part in ["One two. Three", "# Head", "One two.", " Three\nfour!", " No.", " 5.1 ends", "four!", "last"] {
            assert!(parts.iter().any(|found| found == part), "{part:?} is not among {parts:?}");
        }
    }
}
