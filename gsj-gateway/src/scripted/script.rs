//! The script: what the engine says at which turn.

use std::collections::HashMap;
use std::sync::Mutex;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::ScriptedError;
use super::template::python_json;

/// A fault that a turn shows before, or instead of, its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fault {
    #[serde(rename = "http_429")]
    Http429,
    #[serde(rename = "http_500")]
    Http500,
    Reset,
    Stall,
    CutStream,
    NanLogprob,
    NoTokenIds,
    NoLogprobs,
}

/// One turn of a script.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    content: Option<String>,
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Value>,
    raw: Option<String>,
    pub(super) finish_reason: Option<String>,
    fault: Option<Fault>,
    fault_times: Option<u32>,
}

impl Step {
    fn done() -> Self {
        Self { content: Some("Done.".to_owned()), ..Self::default() }
    }

    /// The text that the model is made to say.
    pub(super) fn text(&self) -> String {
        if let Some(raw) = &self.raw {
            return raw.clone();
        }
        let mut out = String::new();
        if let Some(reasoning) = self.reasoning.as_deref().filter(|r| !r.is_empty()) {
            out.push_str("<think>\n");
            out.push_str(reasoning);
            out.push_str("\n</think>\n\n");
        }
        out.push_str(self.content.as_deref().unwrap_or(""));
        for call in &self.tool_calls {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str("<tool_call>\n");
            out.push_str(&call_text(call));
            out.push_str("\n</tool_call>");
        }
        out
    }

    pub(super) fn calls_tools(&self) -> bool {
        self.raw.is_none() && !self.tool_calls.is_empty()
    }
}

/// `{"name": .., "arguments": ..}` as a chat template's `tojson` writes it, so that the turn
/// renders in the history as it was said.
fn call_text(call: &Value) -> String {
    let function = call.get("function").unwrap_or(call);
    let arguments = match function.get("arguments") {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
        Some(other) => other.clone(),
        None => Value::Object(Map::new()),
    };
    let mut shown = Map::new();
    shown.insert("name".to_owned(), function.get("name").cloned().unwrap_or(Value::Null));
    shown.insert("arguments".to_owned(), arguments);
    python_json(&Value::Object(shown))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Several {
    #[serde(default)]
    scripts: Map<String, Value>,
    #[serde(default)]
    default: Vec<Step>,
}

/// Scripts by a part of the user's prompt, in the order of the file; the default stands last and
/// matches everything.
#[derive(Debug)]
pub(super) struct Script {
    entries: Vec<(Option<String>, Vec<Step>)>,
    /// Faults still to be shown, by script and turn.
    left: Mutex<HashMap<(usize, usize), u32>>,
}

impl Script {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, ScriptedError> {
        let wrong = |reason: String| ScriptedError::Script { reason };
        let value: Value = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
        let turns = |value: Value, whose: &str| -> Result<Vec<Step>, ScriptedError> {
            let Value::Array(list) = value else {
                return Err(wrong(format!("{whose} is not a list of turns")));
            };
            list.into_iter()
                .enumerate()
                .map(|(i, turn)| serde_json::from_value(turn).map_err(|e| wrong(format!("{whose}, turn {i}: {e}"))))
                .collect()
        };
        let mut entries = Vec::new();
        match value {
            Value::Array(_) => entries.push((None, turns(value, "the script")?)),
            Value::Object(_) => {
                let several: Several = serde_json::from_value(value).map_err(|e| wrong(e.to_string()))?;
                for (key, list) in several.scripts {
                    let list = turns(list, &format!("`scripts.{key}`"))?;
                    entries.push((Some(key), list));
                }
                entries.push((None, several.default));
            }
            _ => return Err(wrong("it is neither a list nor an object".to_owned())),
        }
        Ok(Self { entries, left: Mutex::new(HashMap::new()) })
    }

    /// The turn to play, and the fault to show with it this time.
    pub(super) fn step(&self, user_prompt: &str, turn: usize) -> (Step, Option<Fault>) {
        let found =
            self.entries.iter().position(|(key, _)| key.as_deref().is_none_or(|part| user_prompt.contains(part)));
        let Some(index) = found else {
            return (Step::done(), None);
        };
        let Some(step) = self.entries.get(index).and_then(|(_, turns)| turns.get(turn)) else {
            return (Step::done(), None);
        };
        let fault = step.fault.filter(|_| {
            let mut left = self.left.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let times = left.entry((index, turn)).or_insert(step.fault_times.unwrap_or(1));
            let shown = *times > 0;
            *times = times.saturating_sub(1);
            shown
        });
        (step.clone(), fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_reads_as_the_template_would_write_it() {
        let script = Script::read(
            r#"[{"content": "I look.", "reasoning": "hm", "tool_calls": [{"name": "bash", "arguments": {"command": "ls 'ä' <x>", "n": 1.0}}]}]"#.as_bytes(),
        )
        .unwrap();
        let (step, fault) = script.step("anything", 0);
        assert_eq!(fault, None);
        assert_eq!(
            step.text(),
            "<think>\nhm\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls 'ä' <x>\", \"n\": 1.0}}\n</tool_call>"
        );
        assert_eq!(script.step("anything", 1).0.text(), "Done.", "past the end it is done");
    }

    #[test]
    fn the_prompt_chooses_among_scripts_and_faults_are_counted_for_each() {
        let script = Script::read(
            br#"{"scripts": {"case A": [{"content": "a", "fault": "reset", "fault_times": 2}]}, "default": [{"content": "d", "fault": "http_429"}]}"#,
        )
        .unwrap();
        assert_eq!(script.step("read case A now", 0).1, Some(Fault::Reset));
        assert_eq!(script.step("read case A now", 0).1, Some(Fault::Reset));
        assert_eq!(script.step("read case A now", 0).1, None, "fault_times is spent");
        assert_eq!(script.step("case B", 0).0.text(), "d");
        assert_eq!(script.step("case B", 0).1, None, "once is the default");
    }

    #[test]
    fn an_unknown_fault_or_key_is_refused_with_its_turn() {
        for bad in [r#"[{"content": "x"}, {"fault": "explode"}]"#, r#"[{"content": "x"}, {"contents": "y"}]"#] {
            let error = Script::read(bad.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("turn 1"), "{error}");
        }
        assert!(Script::read(b"3").is_err(), "a number is no script");
    }
}
