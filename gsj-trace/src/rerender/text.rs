//! A report as a person reads it.

use std::fmt::Write as _;

use super::{Part, Report, Side, TurnReport, Verdict};

/// Characters of text that one side of a difference may take.
const EXCERPT: usize = 60;
/// Turns that are shown when nothing is wrong with them.
const QUIET_TURNS: usize = 12;

impl Report {
    /// The report as lines of text, ending with a line feed: the verdict, the first difference, the turns.
    ///
    /// Control characters and marks that change the direction of writing are shown as escapes: what a model wrote must
    /// not steer the terminal on which it is read.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.headline(&mut out);
        self.difference(&mut out);
        self.turns(&mut out);
        for note in &self.notes {
            let _ = writeln!(out, "  note: {}", shown(note));
        }
        out
    }

    fn headline(&self, out: &mut String) {
        let all = self.ids;
        let _ = match self.verdict {
            Verdict::Equal => writeln!(out, "equal: template and tokenizer give all {all} ids of the trace"),
            Verdict::Retokenized => writeln!(
                out,
                "retokenized: {} of {all} ids differ, but say the same text; the tokenizer cuts it otherwise than it was sampled",
                self.differing
            ),
            Verdict::Different => writeln!(
                out,
                "different: {} of {all} ids of the trace are not in the rendering, {} of its {} not in the trace",
                self.differing, self.differing_rendered, self.rendered
            ),
        };
        if !self.variables.is_empty() {
            let variables: Vec<String> =
                self.variables.iter().map(|(name, value)| format!("{}={}", name.lossy(), value.to_json())).collect();
            let how = if self.inferred { " (found by trying)" } else { "" };
            let _ = writeln!(out, "  rendered with {}{how}", shown(&variables.join(", ")));
        }
    }

    fn difference(&self, out: &mut String) {
        let Some(first) = &self.first else { return };
        let mut place = format!("id {} of {}", first.position, self.ids);
        let _ = match (first.part, first.turn) {
            (Part::Reply, Some(turn)) => write!(place, ", in the reply of turn {turn}"),
            (Part::Context, Some(turn)) => write!(place, ", in front of the reply of turn {turn}"),
            (Part::End, _) => write!(place, ", behind the last reply"),
            _ => Ok(()),
        };
        if let Some(message) = &first.message {
            let _ = write!(place, ": {message}");
        }
        let _ = writeln!(out, "  first at {}", shown(&place));
        if !first.before.is_empty() {
            let _ = writeln!(out, "    after     {}", end_of(&shown(&first.before)));
        }
        let _ = writeln!(out, "    trace     {}", side(&first.trace));
        let _ = writeln!(out, "    rendered  {}", side(&first.rendered));
    }

    fn turns(&self, out: &mut String) {
        let odd =
            |turn: &&TurnReport| turn.added.max(turn.reply).max(turn.prompt.unwrap_or(Verdict::Equal)) > Verdict::Equal;
        let few = self.turns.len() <= QUIET_TURNS;
        let listed: Vec<&TurnReport> = self.turns.iter().filter(|turn| few || odd(turn)).collect();
        if self.turns.is_empty() {
            return;
        }
        if !listed.is_empty() {
            let _ = writeln!(out, "  turn  prompt ids  prompt       added        reply ids  reply        message");
        }
        for turn in listed {
            let prompt = turn.prompt.map_or("-", Verdict::name);
            let message = turn.message.as_ref().map_or_else(|| "-".to_owned(), |m| format!("{}[{}]", m.field, m.index));
            let _ = writeln!(
                out,
                "  {:>4}  {:>10}  {prompt:<11}  {:<11}  {:>9}  {:<11}  {message}",
                turn.turn,
                turn.prompt_ids,
                turn.added.name(),
                turn.reply_ids,
                turn.reply.name(),
            );
        }
        if !few {
            let quiet = self.turns.len() - self.turns.iter().filter(odd).count();
            let _ = writeln!(out, "  {quiet} of {} turns are equal", self.turns.len());
        }
    }
}

fn side(side: &Side) -> String {
    if side.ids.is_empty() {
        return format!("(nothing here) {}", start_of(&shown(&side.text)));
    }
    let ids: Vec<String> = side.ids.iter().map(u32::to_string).collect();
    format!("{}   ids {}", start_of(&shown(&side.text)), ids.join(" "))
}

fn start_of(text: &str) -> String {
    match text.char_indices().nth(EXCERPT) {
        Some((at, _)) => format!("{}..", &text[..at]),
        None => text.to_owned(),
    }
}

fn end_of(text: &str) -> String {
    match text.char_indices().rev().nth(EXCERPT - 1) {
        Some((at, _)) if at > 0 => format!("..{}", &text[at..]),
        _ => text.to_owned(),
    }
}

/// One line without anything that a terminal acts on.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\'' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out
}
