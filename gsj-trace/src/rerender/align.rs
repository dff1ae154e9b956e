//! Two lists of token ids, laid side by side.

use std::ops::Range;

use crate::tokens::TokenText;

/// Pairs of segments that are compared at most; beyond it a difference is one block.
const MAX_PAIRS: usize = 4_000_000;

/// A place where two lists differ; either side may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gap {
    /// Positions in the trace.
    pub(super) trace: Range<usize>,
    /// Positions in the rendering.
    pub(super) rendered: Range<usize>,
    /// Whether both sides decode to the same bytes.
    pub(super) same_text: bool,
}

/// Finds where the lists differ, in order.
///
/// Between the common start and the common end, segments that begin with a control token are matched as whole ones
/// (a message is one or two of them), so that one edited message does not make everything behind it differ.
pub(super) fn gaps(trace: &[u32], rendered: &[u32], tokens: &dyn TokenText) -> Vec<Gap> {
    let start = common_start(trace, rendered);
    let end = common_end(&trace[start..], &rendered[start..]);
    let (inner_trace, inner_rendered) = (start..trace.len() - end, start..rendered.len() - end);
    if inner_trace.is_empty() && inner_rendered.is_empty() {
        return Vec::new();
    }
    let left = segments(trace, inner_trace.clone(), tokens);
    let right = segments(rendered, inner_rendered.clone(), tokens);
    let mut found = Vec::new();
    let mut at = (0, 0);
    let matched = if left.len().saturating_mul(right.len()) > MAX_PAIRS {
        Vec::new()
    } else {
        matching(&left, &right, |l, r| trace[l.clone()] == rendered[r.clone()])
    };
    for (i, j) in matched.into_iter().chain([(left.len(), right.len())]) {
        let (open_left, open_right) = (&left[at.0..i], &right[at.1..j]);
        if open_left.len() == open_right.len() {
            for (l, r) in open_left.iter().zip(open_right) {
                push(trace, rendered, l.clone(), r.clone(), tokens, &mut found);
            }
        } else {
            let span = |list: &[Range<usize>], before: usize, all: &[Range<usize>], whole: &Range<usize>| match (
                list.first(),
                list.last(),
            ) {
                (Some(first), Some(last)) => first.start..last.end,
                _ => {
                    let place = all.get(before).map_or(whole.end, |segment| segment.start);
                    place..place
                }
            };
            let l = span(open_left, at.0, &left, &inner_trace);
            let r = span(open_right, at.1, &right, &inner_rendered);
            push(trace, rendered, l, r, tokens, &mut found);
        }
        at = (i + 1, j + 1);
    }
    found
}

/// Adds what differs between two stretches.
fn push(
    trace: &[u32],
    rendered: &[u32],
    l: Range<usize>,
    r: Range<usize>,
    tokens: &dyn TokenText,
    found: &mut Vec<Gap>,
) {
    let (a, b) = (&trace[l.clone()], &rendered[r.clone()]);
    let start = common_start(a, b);
    let end = common_end(&a[start..], &b[start..]);
    let (l, r) = (l.start + start..l.end - end, r.start + start..r.end - end);
    if l.is_empty() && r.is_empty() {
        return;
    }
    let text = |ids: &[u32]| -> Vec<u8> { ids.iter().filter_map(|id| tokens.bytes(*id)).flatten().copied().collect() };
    let same_text = text(&trace[l.clone()]) == text(&rendered[r.clone()]);
    found.push(Gap { trace: l, rendered: r, same_text });
}

pub(super) fn common_start<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

fn common_end(a: &[u32], b: &[u32]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count()
}

/// Cuts a stretch in front of each control token.
fn segments(ids: &[u32], within: Range<usize>, tokens: &dyn TokenText) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start = within.start;
    for at in within.clone() {
        if at > start && tokens.is_control(ids[at]) {
            out.push(start..at);
            start = at;
        }
    }
    if start < within.end {
        out.push(start..within.end);
    }
    out
}

/// The longest common subsequence of two lists, as pairs of positions.
fn matching<T>(left: &[T], right: &[T], same: impl Fn(&T, &T) -> bool) -> Vec<(usize, usize)> {
    let width = right.len() + 1;
    let mut longest = vec![0_u32; (left.len() + 1) * width];
    let mut equal = vec![false; left.len() * right.len()];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            let pair = same(&left[i], &right[j]);
            equal[i * right.len() + j] = pair;
            longest[i * width + j] = if pair {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::new();
    while i < left.len() && j < right.len() {
        if equal[i * right.len() + j] {
            out.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids below 100 are letters, 100 and above control tokens; 50 says "ab", as 0 and 1 do.
    #[derive(Debug)]
    struct Letters(Vec<u8>);

    impl TokenText for Letters {
        fn bytes(&self, id: u32) -> Option<&[u8]> {
            match id {
                50 => Some(&self.0[0..2]),
                100.. => Some(b"|"),
                _ => self.0.get(id as usize..=id as usize),
            }
        }
        fn is_control(&self, id: u32) -> bool {
            id >= 100
        }
        fn identity(&self) -> &'static str {
            "letters"
        }
    }

    fn found(trace: &[u32], rendered: &[u32]) -> Vec<(Range<usize>, Range<usize>, bool)> {
        let tokens = Letters((b'a'..=b'z').collect());
        gaps(trace, rendered, &tokens).into_iter().map(|gap| (gap.trace, gap.rendered, gap.same_text)).collect()
    }

    #[test]
    fn differences_are_found_in_their_segments() {
        assert_eq!(found(&[1, 2], &[1, 2]), []);
        assert_eq!(found(&[], &[7]), [(0..0, 0..1, false)]);
        assert_eq!(found(&[3, 0, 1, 3], &[3, 50, 3]), [(1..3, 1..2, true)], "the same text");
        assert_eq!(
            found(&[100, 1, 2, 100, 3, 100, 4, 5], &[100, 1, 9, 100, 3, 100, 4, 6, 7]),
            [(2..3, 2..3, false), (7..8, 7..9, false)],
            "a message between two edited ones stays equal"
        );
        assert_eq!(
            found(&[100, 1, 101, 2, 100, 3], &[100, 1, 100, 3]),
            [(2..4, 2..2, false)],
            "a message that is gone is one gap"
        );
        assert_eq!(
            found(&[100, 1, 100, 3, 5, 100, 7], &[100, 1, 101, 2, 100, 3, 6, 100, 7]),
            [(2..5, 2..7, false)],
            "an edited message beside a new one is one gap with it"
        );
    }

    proptest::proptest! {
        #[test]
        fn what_is_no_gap_is_equal(a in proptest::collection::vec(0_u32..104, 0..40), b in proptest::collection::vec(0_u32..104, 0..40)) {
            let (mut i, mut j) = (0, 0);
            for (l, r, _) in found(&a, &b).into_iter().chain([(a.len()..a.len(), b.len()..b.len(), true)]) {
                assert_eq!(a[i..l.start], b[j..r.start]);
                (i, j) = (l.end, r.end);
            }
        }
    }
}
