//! Whether two contexts differ only in what the template adds to or takes from earlier replies (section 11.6).

use crate::tokens::TokenText;

use super::units::{Cursor, Unit};

/// A reply in a list of ids, as token indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reply {
    /// Where its generation opening begins: after the last control token before it.
    pub(super) opening: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The tokenizer and the texts around reasoning.
#[derive(Clone, Copy)]
pub(super) struct Language<'t> {
    pub(super) tokens: &'t dyn TokenText,
    pub(super) open: &'t [u8],
    pub(super) close: &'t [u8],
}

impl Language<'_> {
    /// Where the generation opening begins that ends at `to`, looking back no further than `from`.
    pub(super) fn opening(&self, ids: &[u32], from: usize, to: usize) -> usize {
        let between = ids.get(from..to).unwrap_or_default();
        from + between.iter().rposition(|&id| self.is_border(id)).map_or(0, |at| at + 1)
    }

    /// Whether an id is a control token other than the marks of reasoning.
    fn is_border(&self, id: u32) -> bool {
        let text = self.tokens.bytes(id);
        self.tokens.is_control(id) && text != Some(self.open) && text != Some(self.close)
    }

    /// Whether `q` begins with `context` but for reasoning, and the white space around it, that only one of them has
    /// inside `replies`; then the replies as they stand in `q`.
    ///
    /// `context` is held in two parts, of which `same` ids are those of `q` as well; `replies` are in order.
    pub(super) fn differs_in_reasoning(
        &self,
        q: &[u32],
        context: [&[u32]; 2],
        same: usize,
        replies: &[Reply],
    ) -> Option<Vec<Reply>> {
        let (done, ahead) = replies.split_at(replies.partition_point(|reply| reply.end < same));
        // A difference is understood only from the opening of the reply that it is in.
        let from = ahead.first().map_or(same, |reply| reply.opening.min(same));
        let side = |parts| Side { cursor: Cursor::new(self.tokens, parts, from), quiet: 0 };
        let mut walk = Walk { language: *self, q: side([q, &[]]), context: side(context) };
        let mut found = done.to_vec();
        for reply in ahead {
            walk.outside(reply.opening)?;
            found.push(walk.inside(*reply)?);
        }
        walk.outside(context[0].len() + context[1].len())?;
        Some(found)
    }
}

struct Side<'s, 't> {
    cursor: Cursor<'s, 't>,
    /// So many bytes from here on no reasoning begins: they are known white space.
    quiet: usize,
}

/// What comes after white space.
enum Ahead<'s, 't> {
    /// Reasoning; after it and the white space that follows it.
    Reasoning(Cursor<'s, 't>),
    /// The end of the reply, or a control token.
    Border(Cursor<'s, 't>),
    Text,
}

impl<'s, 't> Side<'s, 't> {
    /// Looks over white space, not beyond the token index `limit`.
    fn ahead(&mut self, language: &Language<'_>, limit: usize) -> Ahead<'s, 't> {
        if self.quiet > 0 {
            return Ahead::Text;
        }
        let mut after = self.cursor;
        let blanks = after.skip_space(limit);
        if after.at() < limit
            && let Some(inside) = after.eat(language.open)
        {
            return Ahead::Reasoning(end_of_reasoning(inside, language, limit));
        }
        if after.at() >= limit || !matches!(after.unit(), Unit::Text(_)) {
            return Ahead::Border(after);
        }
        self.quiet = blanks;
        Ahead::Text
    }

    fn jump(&mut self, to: Cursor<'s, 't>) {
        *self = Self { cursor: to, quiet: 0 };
    }

    fn step(&mut self) {
        self.cursor.step();
        self.quiet = self.quiet.saturating_sub(1);
    }

    fn skip_space(&mut self, limit: usize) {
        self.cursor.skip_space(limit);
        self.quiet = 0;
    }
}

/// Reasoning that is not closed goes on to the end of its reply.
fn end_of_reasoning<'s, 't>(mut here: Cursor<'s, 't>, language: &Language<'_>, limit: usize) -> Cursor<'s, 't> {
    while here.at() < limit {
        if let Some(mut after) = here.eat(language.close) {
            after.skip_space(limit);
            return after;
        }
        if !matches!(here.unit(), Unit::Text(_)) {
            break;
        }
        here.step();
    }
    here
}

struct Walk<'s, 't> {
    language: Language<'t>,
    q: Side<'s, 't>,
    context: Side<'s, 't>,
}

impl Walk<'_, '_> {
    /// Steps over what both say, up to a token index of the context.
    fn outside(&mut self, to: usize) -> Option<()> {
        (self.q.quiet, self.context.quiet) = (0, 0);
        let (q, context) = (&mut self.q.cursor, &mut self.context.cursor);
        while context.at() < to {
            if q.is_boundary() && context.is_boundary() {
                let run = context.run();
                let run = &run[..run.len().min(to - context.at())];
                let equal = super::units::common_prefix(q.run(), run);
                if equal > 0 {
                    q.skip_tokens(equal);
                    context.skip_tokens(equal);
                    continue;
                }
            }
            let (Unit::Text(a), Unit::Text(b)) = (q.unit(), context.unit()) else { return None };
            let count = a.len().min(b.len());
            if a[..count] != b[..count] {
                return None;
            }
            q.skip_bytes(count);
            context.skip_bytes(count);
        }
        Some(())
    }

    /// Steps over one reply and its opening; gives its place in `q`.
    fn inside(&mut self, reply: Reply) -> Option<Reply> {
        let opening = self.q.cursor.at();
        if self.q.cursor.is_boundary() && self.context.cursor.is_boundary() && self.context.cursor.at() == reply.opening
        {
            let length = reply.end - reply.opening;
            let (a, b) = (self.q.cursor.run(), self.context.cursor.run());
            if a.len() >= length && b.len() >= length && a[..length] == b[..length] {
                self.q.cursor.skip_tokens(length);
                self.context.cursor.skip_tokens(length);
                let (start, end) = (opening + reply.start - reply.opening, opening + length);
                return Some(Reply { opening, start, end });
            }
        }
        let mut start = None;
        // Whether a control token ended what was compared so far.
        let mut closed = false;
        loop {
            if self.context.cursor.at() >= reply.start && start.is_none() {
                start = Some(self.q.cursor.at());
                // White space before a reply is the template's.
                self.q.skip_space(usize::MAX);
                self.context.skip_space(reply.end);
            }
            if self.context.cursor.at() >= reply.end && closed {
                break;
            }
            let context = self.context.ahead(&self.language, reply.end);
            let q = self.q.ahead(&self.language, usize::MAX);
            match (q, context) {
                (Ahead::Reasoning(q), Ahead::Reasoning(context)) => {
                    self.q.jump(q);
                    self.context.jump(context);
                }
                (Ahead::Reasoning(q), _) => {
                    self.q.jump(q);
                    self.context.skip_space(reply.end);
                }
                (_, Ahead::Reasoning(context)) => {
                    self.context.jump(context);
                    self.q.skip_space(usize::MAX);
                }
                (Ahead::Border(q), Ahead::Border(context)) => {
                    self.q.jump(q);
                    self.context.jump(context);
                    if self.context.cursor.at() >= reply.end {
                        // The reply was cut; what closes it, and white space before that, stands outside.
                        self.context.skip_space(usize::MAX);
                        break;
                    }
                    self.same_unit()?;
                    closed = true;
                }
                // A reply that was cut, in a template that closes it with text.
                (Ahead::Text, Ahead::Border(context)) if context.at() >= reply.end => {
                    self.context.jump(context);
                    break;
                }
                (Ahead::Text, Ahead::Text) => {
                    self.same_unit()?;
                    closed = false;
                }
                _ => return None,
            }
        }
        let end = self.q.cursor.next_boundary();
        Some(Reply { opening, start: start.unwrap_or(end), end })
    }

    fn same_unit(&mut self) -> Option<()> {
        let same = match (self.q.cursor.unit(), self.context.cursor.unit()) {
            (Unit::Whole(a), Unit::Whole(b)) => a == b,
            (Unit::Text(a), Unit::Text(b)) => a.first() == b.first(),
            _ => false,
        };
        same.then(|| {
            self.q.step();
            self.context.step();
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::units::{common_prefix, tests::Toy};
    use super::*;

    fn toy() -> Toy {
        Toy::new(&[
            ("<s>", true),
            ("<e>", true),
            ("<think>", false),
            ("</think>", false),
            ("\n\n", false),
            ("Hello", false),
        ])
    }

    /// The context is marked: `[` opens a reply's opening, `|` its text, `]` ends it.
    fn compare(context: &str, q: &str) -> Option<Vec<Reply>> {
        let toy = toy();
        let language = Language { tokens: &toy, open: b"<think>", close: b"</think>" };
        let mut ids = Vec::new();
        let (mut replies, mut opening, mut start) = (Vec::new(), 0, 0);
        for piece in context.split_inclusive(['[', '|', ']']) {
            let (text, mark) = piece.split_at(piece.trim_end_matches(['[', '|', ']']).len());
            ids.extend(toy.ids(text));
            match mark {
                "[" => opening = ids.len(),
                "|" => start = ids.len(),
                "]" => replies.push(Reply { opening, start, end: ids.len() }),
                _ => {}
            }
        }
        let q = toy.ids(q);
        let same = common_prefix(&q, &ids);
        let found = language.differs_in_reasoning(&q, [&ids, &[]], same, &replies);
        let (head, tail) = ids.split_at(ids.len() / 2);
        assert_eq!(language.differs_in_reasoning(&q, [head, tail], same, &replies), found, "wherever it is split");
        found
    }

    #[test]
    fn reasoning_may_come_and_go_inside_replies() {
        for (context, q) in [
            ("<s>u<e><s>[a\n|<think>\nwhy\n</think>\n\nHello<e>]", "<s>u<e><s>a\nHello<e>\n<s>next"),
            ("<s>u<e><s>[a\n|Hello<e>]", "<s>u<e><s>a\n<think>\n\n</think>\n\nHello<e>"),
            ("<s>u<e><s>[a\n<think>\n\n</think>\n\n|Hello<e>]", "<s>u<e><s>a\nHello<e>"),
            ("<s>u<e><s>[a\n<think>\n|why</think>Hello<e>]", "<s>u<e><s>a\n<think>\nother</think>\n\nHello<e>"),
            ("<s>[a\n|x <think>1</think> y<e>]<s>u<e><s>[a\n|z<e>]", "<s>a\nx y<e><s>u<e><s>a\nz<e>"),
            ("<s>[a\n|<think>cut]<e>", "<s>a\n<e>"),
            ("<s>[a\n|Hello]<e>", "<s>a\n<think></think>Hello<e>"),
            ("<s>[a\n|Hello\n\n<e>]", "<s>a\nHello<e>"),
            ("<s>[a|Hello<e>]", "<s>a\n\nHello<e>"),
            ("\u{1}<s>[a\n|<think>x</think>Hello<e>]", "\u{1}<s>a\nHello<e>"),
            ("<s>[a\n|Hello\n<e>more<e>]\n", "<s>a\nHello\n<e>more<think>x</think><e>\n"),
        ] {
            assert!(compare(context, q).is_some(), "{context} and {q}");
        }
    }

    #[test]
    fn anything_else_is_a_difference() {
        for (context, q) in [
            ("<s>u<e><s>[a\n|Hello<e>]", "<s>u<e><s>a\nHella<e>"),
            ("<s>[a\n|Hello<e>]\n<s><think>x</think>u<e>", "<s>a\nHello<e>\n<s>u<e>"),
            ("<s>u<e><s>[a\n|Hello<e>]", "<s>u\n<e><s>a\nHello<e>"),
            ("<s>[a\n|<think>x</think>Hello<e>]<s>u", "<s>a\nHello<e><s>v"),
            ("<s>[a\n|Hello<e>]", "<s>a\nHello"),
            ("<s>[a\n|Hello<e>]", "<s>b\nHello<e>"),
            ("<s>[a\n|Hel  lo<e>]", "<s>a\nHel lo<e>"),
            ("<s>[a\n|Hello<e>]", "<s>a\nHello more<e>"),
        ] {
            assert_eq!(compare(context, q), None, "{context} and {q}");
        }
    }

    #[test]
    fn the_replies_are_found_again() {
        let found = compare("<s>[a|<think>1</think>x<e>]u<s>[a|y<e>]", "<s>ax<e>u<s>a<think></think>y<e>").unwrap();
        assert_eq!(found, [Reply { opening: 1, start: 2, end: 4 }, Reply { opening: 6, start: 7, end: 11 }]);
    }

    #[test]
    fn much_white_space_takes_no_more_than_one_look() {
        let space = " ".repeat(100_000);
        let context = format!("<s>[a|x{space}y<think>1</think><e>]");
        assert!(compare(&context, &format!("<s>ax{space}y<e>")).is_some());
    }
}
