//! The outline as text for a terminal.

use std::fmt::Write as _;

use super::{Context, Fidelity, Header, Outline, Span, TraceOutline, Turn};

/// The narrowest layout; a narrower terminal gets lines of this width.
const MIN_WIDTH: usize = 40;

/// Writes an outline as lines of at most `width` characters, without colours, ending with a line feed.
///
/// What is said about the session is wrapped between words and never cut; what the messages hold is shown as one-line
/// excerpts. Control characters, and marks that change the direction of writing, are
/// replaced: what a model wrote must not steer the terminal on which it is read.
#[must_use]
pub fn render(outline: &Outline, width: usize) -> String {
    let mut page = Page { width: width.max(MIN_WIDTH), out: String::new() };
    page.header(&outline.header);
    for (i, trace) in outline.traces.iter().enumerate() {
        page.trace(trace, i + 1, outline.traces.len());
    }
    page.line("");
    let totals = outline.totals;
    page.fact(
        &label("total"),
        &format!(
            "{}, {}, {} prompt ids, {} response ids, {} trained on",
            count(totals.assistant_turns, "assistant turn"),
            count(totals.tool_calls, "tool call"),
            totals.prompt_tokens,
            totals.response_tokens,
            totals.trained_tokens,
        ),
    );
    if let Some(fidelity) = &outline.fidelity {
        page.fact(&label("contexts"), &certified(fidelity));
    } else if !outline.traces.is_empty() {
        page.fact(&label("contexts"), "no certificate says what each token was sampled from");
    }
    if !outline.traces.is_empty() {
        page.findings("builder", outline.builder_findings.as_deref());
    }
    if let Some(findings) = &outline.quarantine_findings {
        page.findings("rejected", Some(findings));
    }
    page.out
}

struct Page {
    width: usize,
    out: String,
}

impl Page {
    /// One line, cut to the width, without trailing space.
    fn line(&mut self, text: &str) {
        self.out.push_str(excerpt(text, self.width).trim_end());
        self.out.push('\n');
    }

    /// A text behind its label, wrapped between words; further lines are indented to where the text begins.
    fn fact(&mut self, label: &str, text: &str) {
        let indent = label.chars().count();
        let room = self.width.saturating_sub(indent).max(1);
        for (i, line) in wrap(text, room).iter().enumerate() {
            let lead = if i == 0 { label.to_owned() } else { " ".repeat(indent) };
            self.line(&format!("{lead}{line}"));
        }
    }

    fn header(&mut self, header: &Header) {
        let case = header.case_id.as_ref().map(|case| {
            let mut text = case.clone();
            if let Some(timestep) = &header.timestep {
                let _ = write!(text, ", timestep {timestep}");
            }
            if let Some(source) = &header.prompt_source {
                let _ = write!(text, ", prompt {source}");
            }
            text
        });
        let timing: Vec<String> =
            header.timing_ms.iter().map(|(stage, ms)| format!("{stage} {}", duration(*ms))).collect();
        let timing = (!timing.is_empty()).then(|| timing.join(", "));
        for (name, value) in [
            ("session", &header.session_id),
            ("task", &header.task_id),
            ("status", &header.status),
            ("error", &header.error),
            ("case", &case),
            ("checkout", &header.checkout),
            ("agent", &header.agent),
            ("model", &header.model),
            ("engine", &header.engine),
            ("sandbox", &header.sandbox),
            ("time", &timing),
        ] {
            if let Some(value) = value {
                self.fact(&label(name), value);
            }
        }
    }

    fn trace(&mut self, trace: &TraceOutline, number: usize, of: usize) {
        self.line("");
        let mut head = format!(
            "{} prompt ids, {} response ids, {}, {}",
            trace.prompt_tokens,
            trace.response_tokens,
            count(trace.spans.len(), "trained span"),
            count(trace.tools, "tool"),
        );
        if let Some(reason) = &trace.finish_reason {
            let _ = write!(head, ", finish {reason}");
        }
        self.fact(&format!("trace {number} of {of}: "), &head);
        for (i, turn) in trace.turns.iter().enumerate() {
            let span = turn.span.and_then(|at| trace.spans.get(at));
            // Completions and trained spans are one to one, in order; where they are not, nothing is said of a turn.
            let context = turn.span.filter(|_| trace.contexts.len() == trace.spans.len());
            self.turn(turn, i + 1, span, context.and_then(|at| trace.contexts.get(at)));
        }
        if trace.turns.iter().all(|turn| turn.span.is_none()) {
            // The spans belong to no message: shown by themselves.
            for span in &trace.spans {
                self.fact("     mask 1 ", &words(span));
            }
            for context in &trace.contexts {
                self.fact(&format!("     context of {} ", context.completion_id), &differing(context));
            }
        }
    }

    fn turn(&mut self, turn: &Turn, number: usize, span: Option<&Span>, context: Option<&Context>) {
        let text = match &turn.tool {
            Some(tool) => format!("{tool}: {}", squeezed(&turn.text)),
            None => squeezed(&turn.text),
        };
        self.line(&format!("{number:>3}  {:<10}{text}", excerpt(&turn.role, 9)));
        let indent = " ".repeat(15);
        if let Some(reasoning) = &turn.reasoning {
            self.line(&format!("{indent}(thinks) {}", squeezed(reasoning)));
        }
        for call in &turn.tool_calls {
            self.line(&format!("{indent}-> {} {}", call.name, squeezed(&call.arguments)));
        }
        if let Some(span) = span {
            self.fact(&format!("{indent}mask 1 "), &words(span));
        }
        // What was sampled from just what stands before it is nothing to stop at.
        if let Some(context) = context.filter(|context| context.kind != "exact") {
            self.fact(&format!("{indent}context "), &differing(context));
        }
    }

    fn findings(&mut self, name: &str, findings: Option<&[String]>) {
        match findings {
            None => self.fact(&label(name), "does not say what it found"),
            Some([]) => self.fact(&label(name), "no findings"),
            Some(findings) => {
                for (i, finding) in findings.iter().enumerate() {
                    let name = if i == 0 { name } else { "" };
                    self.fact(&label(name), finding);
                }
            }
        }
    }
}

/// A name as the first column.
fn label(name: &str) -> String {
    format!("{name:<10}")
}

/// Breaks a text between words into lines of at most `width` characters, one line at least; a longer word is broken.
///
/// ```
/// assert_eq!(gsj_trace::outline::wrap("one two three", 7), ["one two", "three"]);
/// ```
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length <= width {
            line.push(' ');
            line.push_str(word);
            used += 1 + length;
            continue;
        }
        if used > 0 {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        for c in word.chars() {
            if used == width {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(c);
            used += 1;
        }
    }
    lines.push(line);
    lines
}

/// The certificate of all completions in words.
fn certified(fidelity: &Fidelity) -> String {
    let kinds: Vec<String> = fidelity.kinds.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    let mut out = match fidelity.completions {
        Some(n) => format!("{}: {}", count(usize::try_from(n).unwrap_or(usize::MAX), "completion"), kinds.join(", ")),
        None => kinds.join(", "),
    };
    if let Some(continuity) = &fidelity.continuity {
        let _ = write!(out, "; continuity {continuity}");
    }
    match &fidelity.tokenizer {
        Some(tokenizer) => {
            let short: String = tokenizer.chars().take(12).collect();
            let _ = write!(out, "; tokenizer {short}");
        }
        None => out.push_str("; no tokenizer"),
    }
    out
}

/// The kind of a context, and how much of it differs.
fn differing(context: &Context) -> String {
    match context.differing_tokens {
        Some(n) if n > 0 => format!("{}, {n} ids differ from what the trace says before it", context.kind),
        _ => context.kind.clone(),
    }
}

fn words(span: &Span) -> String {
    let mut out = format!("{}..{}, {}", span.start, span.end, count(span.tokens(), "token"));
    if let (Some(min), Some(mean)) = (span.min_logprob, span.mean_logprob) {
        let _ = write!(out, ", logprob min {min:.3} mean {mean:.3}");
    }
    out
}

fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

fn duration(ms: f64) -> String {
    if ms >= 1000.0 { format!("{:.1} s", ms / 1000.0) } else { format!("{ms:.0} ms") }
}

/// At most `width` characters of the text on one line; three dots say that there is more.
fn excerpt(text: &str, width: usize) -> String {
    let mut clean = text.chars().map(|c| match c {
        c if c.is_whitespace() => ' ',
        c if steers(c) => '\u{fffd}',
        c => c,
    });
    let mut out: String = clean.by_ref().take(width).collect();
    if clean.next().is_some() {
        let keep = out.char_indices().nth(width.saturating_sub(3)).map_or(out.len(), |(at, _)| at);
        out.truncate(keep);
        out.push_str("...");
    }
    out
}

/// The text on one line, with each run of white space as one blank.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Value;

    fn rendered(document: &str, width: usize) -> String {
        render(&Outline::of(&Value::parse(document.as_bytes()).unwrap()), width)
    }

    const RESULT: &str = r##"{"session_id":"ses_1","task_id":"t1","status":"COMPLETED","error":null,
        "timing":{"register_to_init_queue_ms":2.4,"init_ms":391.1,"run_ms":23621.7},"metadata":{"case_id":"case_0001","timestep":12,"prompt_source":"free"},
        "trajectory":{"status":"COMPLETED","error":null,"metadata":{"model_used":"m","gsj_validation":{"findings":[]}},"traces":[{
        "prompt_ids":[1,2,3],"response_ids":[4,5,6,7,8,9,10],"loss_mask":[1,1,0,0,0,1,1],"response_logprobs":[-0.5,-1.5,0.0,0.0,0.0,-7.25,-0.75],
        "finish_reason":"stop","tools":[{},{}],
        "prompt_messages":[{"role":"system","content":"Be exact."},{"role":"user","content":[{"type":"text","text":"# Task\n\nWho   signed?"},{"type":"image_url"}]}],
        "response_messages":[
          {"role":"assistant","content":null,"reasoning_content":"look it up\nfirst","tool_calls":[{"id":"k","type":"function","function":{"name":"mcp_gsj_search_case","arguments":"{\"query\": \"signed\"}"}}]},
          {"role":"tool","tool_call_id":"k","content":"page 9\u001b[31m says Marta Hofstetter signed the lease on the fourth of May, in the presence of two witnesses"},
          {"role":"assistant","content":"Marta Hofstetter."}],
        "metadata":{"case_id":"case_0001","timestep":12,"prompt_source":"free","gsj_agent":{"name":"pi","version":"0.83.0"},
          "gsj_engine":{"kind":"vllm","version":null},"gsj_sandbox":{"backend":"bwrap","backend_version":"0.8.0","network":"none"},
          "gsj_workspace":{"commit":"3aa70d6391c227b8e05e3b53c1e242060b95154a","pages":{"count":12,"min":1,"max":12}}}}]}}"##;

    #[test]
    fn a_result_is_shown_as_a_person_reads_it() {
        insta::assert_snapshot!(rendered(RESULT, 88), @r#"
        session   ses_1
        task      t1
        status    COMPLETED
        case      case_0001, timestep 12, prompt free
        checkout  commit 3aa70d6391c2, 12 pages 1..12
        agent     pi 0.83.0
        model     m
        engine    vllm
        sandbox   bwrap 0.8.0, network none
        time      register_to_init_queue 2 ms, init 391 ms, run 23.6 s

        trace 1 of 1: 3 prompt ids, 7 response ids, 2 trained spans, 2 tools, finish stop
          1  system    Be exact.
          2  user      # Task Who signed? [image_url]
          3  assistant
                       (thinks) look it up first
                       -> mcp_gsj_search_case {"query": "signed"}
                       mask 1 0..2, 2 tokens, logprob min -1.500 mean -1.000
          4  tool      mcp_gsj_search_case: page 9�[31m says Marta Hofstetter signed the leas...
          5  assistant Marta Hofstetter.
                       mask 1 5..7, 2 tokens, logprob min -7.250 mean -4.000

        total     2 assistant turns, 1 tool call, 3 prompt ids, 7 response ids, 4 trained on
        contexts  no certificate says what each token was sampled from
        builder   no findings
        "#);
    }

    #[test]
    fn the_certificate_says_what_each_reply_was_sampled_from() {
        let certified = RESULT
            .replace(
                r#""gsj_validation":{"findings":[]}}"#,
                r#""gsj_validation":{"findings":[]},"gsj_fidelity":{"continuity":"same_text","completions":3,"exact":1,
                   "retokenized":1,"template":0,"superseded":1,"tokenizer":"ae566a96943a3b48167a22355b431704e3e04460"}}"#,
            )
            .replace(
                r#""gsj_engine":{"kind""#,
                r#""gsj_fidelity":{"turns":[{"completion_id":"c1","kind":"exact","differing_tokens":0},
                   {"completion_id":"c3","kind":"retokenized","differing_tokens":2}]},"gsj_engine":{"kind""#,
            );
        let shown = rendered(&certified, 110);
        let said: Vec<&str> = shown.lines().filter(|line| line.contains("context")).map(str::trim).collect();
        assert_eq!(
            said,
            [
                "context retokenized, 2 ids differ from what the trace says before it",
                "contexts  3 completions: 1 exact, 1 retokenized, 1 superseded; continuity same_text; tokenizer \
                 ae566a96943a",
            ]
        );
        let unpaired = certified.replace(r#""loss_mask":[1,1,0,0,0,1,1]"#, r#""loss_mask":[1,1,1,1,1,1,1]"#);
        let shown = rendered(&unpaired, 110);
        let listed: Vec<&str> = shown.lines().filter(|line| line.contains("context of")).map(str::trim).collect();
        assert_eq!(listed.len(), 2, "no turn can be told apart, so the contexts stand by themselves: {shown}");
    }

    #[test]
    fn what_is_said_of_the_session_is_wrapped_and_not_cut() {
        let error = "the engine at http://127.0.0.1:8000 answered 404: no model `qwen3`; name one that it serves in `engine.model`";
        let failed = RESULT.replace(
            r#""error":null,
        "timing""#,
            &format!(r#""error":"{error}","timing""#),
        );
        assert_ne!(failed, RESULT, "the error is in the document");
        let shown = rendered(&format!(r#"{{"findings":["G0:{}"],"session_result":{failed}}}"#, "x".repeat(60)), 60);
        let (head, rest) = shown.split_once("  1  system").unwrap();
        let total = &rest[rest.find("total").unwrap()..];
        insta::assert_snapshot!(format!("{head}...\n{total}"), @r"
        session   ses_1
        task      t1
        status    COMPLETED
        error     the engine at http://127.0.0.1:8000 answered 404:
                  no model `qwen3`; name one that it serves in
                  `engine.model`
        case      case_0001, timestep 12, prompt free
        checkout  commit 3aa70d6391c2, 12 pages 1..12
        agent     pi 0.83.0
        model     m
        engine    vllm
        sandbox   bwrap 0.8.0, network none
        time      register_to_init_queue 2 ms, init 391 ms, run 23.6
                  s

        trace 1 of 1: 3 prompt ids, 7 response ids, 2 trained spans,
                      2 tools, finish stop
        ...
        total     2 assistant turns, 1 tool call, 3 prompt ids, 7
                  response ids, 4 trained on
        contexts  no certificate says what each token was sampled
                  from
        builder   no findings
        rejected  G0:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
                  xxxxxxxxxxxxx
        ");
    }

    #[test]
    fn a_version_that_names_its_engine_stands_alone() {
        let engine = |version: &str| {
            let document =
                RESULT.replace(r#""kind":"vllm","version":null"#, &format!(r#""kind":"vllm","version":"{version}""#));
            let shown = rendered(&document, 88);
            shown.lines().find_map(|line| line.strip_prefix("engine    ")).unwrap_or_default().to_owned()
        };
        assert_eq!(engine("0.10.2"), "vllm 0.10.2");
        assert_eq!(engine("vllm 0.10.2"), "vllm 0.10.2");
        assert_eq!(engine("vLLM/0.10.2"), "vLLM/0.10.2");
        assert_eq!(engine("vllm"), "vllm");
        assert_eq!(engine("vllmx 1"), "vllm vllmx 1", "another word that begins alike");
    }

    #[test]
    fn a_word_that_fits_no_line_is_broken() {
        assert_eq!(wrap("ab  abcdefgh\nij", 3), ["ab", "abc", "def", "gh", "ij"]);
        assert_eq!(wrap("ab cd ef", 5), ["ab cd", "ef"]);
        assert_eq!(wrap("é".repeat(5).as_str(), 4), ["éééé", "é"]);
        assert_eq!(wrap("ab", 0), ["a", "b"]);
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn a_file_of_the_quarantine_shows_its_findings() {
        let document = format!(r#"{{"findings":["G5:no_pages","LP1:x"],"session_result":{RESULT}}}"#);
        let shown = rendered(&document, 200);
        assert!(shown.ends_with("\nrejected  G5:no_pages\n          LP1:x\n"), "{shown}");
        assert!(shown.starts_with("session   ses_1\n"), "{shown}");
    }

    #[test]
    fn spans_that_match_no_turn_stand_by_themselves() {
        let shown = rendered(
            r#"{"trajectory":{"traces":[{"loss_mask":[0,1,1],"response_ids":[1,2,3],"response_messages":[]}, 5]}}"#,
            80,
        );
        assert!(shown.contains("     mask 1 1..3, 2 tokens\n"), "{shown}");
        assert!(shown.contains("trace 2 of 2: 0 prompt ids"), "{shown}");
    }

    #[test]
    fn no_line_is_wider_than_asked_and_nothing_steers_the_terminal() {
        let shown = rendered(RESULT, 50);
        assert!(shown.lines().all(|line| line.chars().count() <= 50), "{shown}");
        assert!(shown.chars().all(|c| c == '\n' || !steers(c)));
    }
}
