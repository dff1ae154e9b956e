//! One row of a task bank: as it stands in a file, and as a task.

use std::fmt;
use std::sync::Arc;

use crate::error::{RowFault, shown};

/// One of the two splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Split {
    /// For training.
    Train,
    /// For evaluation.
    Eval,
}

impl Split {
    /// The split's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Eval => "eval",
        }
    }

    /// The split of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Train, Self::Eval].into_iter().find(|split| split.as_str() == name)
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a task asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// A text of its own.
    Free {
        /// The text.
        text: String,
    },
    /// What the card of a skill says.
    Skill {
        /// The skill's name.
        name: String,
        /// The card's text, as it stood in the corpus.
        card: Arc<str>,
    },
}

impl Ask {
    /// The source as the table has it: `free`, or `skill:NAME`.
    #[must_use]
    pub fn source(&self) -> String {
        match self {
            Self::Free { .. } => "free".to_owned(),
            Self::Skill { name, .. } => format!("skill:{name}"),
        }
    }

    /// What an agent is asked: the text, or the card (`api.md`).
    #[must_use]
    pub fn instruction(&self) -> &str {
        match self {
            Self::Free { text } => text,
            Self::Skill { card, .. } => card,
        }
    }
}

/// One task: a case at a timestep with a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// The case.
    pub case_id: String,
    /// The last visible page, from 1.
    pub timestep: u32,
    /// `skill:NAME` or `free:SLUG`.
    pub prompt_id: String,
    /// The split of the case.
    pub split: Split,
    /// What is asked.
    pub ask: Ask,
    /// The image that the corpus names.
    pub sandbox_image: Arc<str>,
}

impl TaskRow {
    /// What orders the rows of a bank, and names one.
    #[must_use]
    pub fn key(&self) -> TaskKey {
        TaskKey { case_id: self.case_id.clone(), timestep: self.timestep, prompt_id: self.prompt_id.clone() }
    }
}

/// Case, timestep and prompt, in the order in which a bank is sorted: text by code point, timesteps as numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskKey {
    /// The case.
    pub case_id: String,
    /// The timestep.
    pub timestep: u32,
    /// The prompt.
    pub prompt_id: String,
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} timestep {} {}", self.case_id, self.timestep, shown(&self.prompt_id))
    }
}

/// One row as it stands in a file: anything may be missing or odd.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the columns of `corpus.md` section 10, by their names")]
pub struct RawRow {
    pub case_id: Option<String>,
    pub timestep: Option<i64>,
    pub prompt_id: Option<String>,
    pub split: Option<String>,
    pub prompt_source: Option<String>,
    pub prompt_text: Option<String>,
    pub skill_card_text: Option<Arc<str>>,
    pub sandbox_image: Option<Arc<str>>,
}

impl From<&TaskRow> for RawRow {
    fn from(row: &TaskRow) -> Self {
        let (text, card) = match &row.ask {
            Ask::Free { text } => (Some(text.clone()), None),
            Ask::Skill { card, .. } => (None, Some(card.clone())),
        };
        Self {
            case_id: Some(row.case_id.clone()),
            timestep: Some(i64::from(row.timestep)),
            prompt_id: Some(row.prompt_id.clone()),
            split: Some(row.split.as_str().to_owned()),
            prompt_source: Some(row.ask.source()),
            prompt_text: text,
            skill_card_text: card,
            sandbox_image: Some(row.sandbox_image.clone()),
        }
    }
}

impl TryFrom<RawRow> for TaskRow {
    type Error = RowFault;

    fn try_from(row: RawRow) -> Result<Self, RowFault> {
        let case_id = needed("case_id", row.case_id)?;
        if !is_case_id(&case_id) {
            return fault(
                "case_id",
                format!("`{}` is no case id: small letters, digits, `_` and `-`", shown(&case_id)),
            );
        }
        let number = needed("timestep", row.timestep)?;
        let Some(timestep) = u32::try_from(number).ok().filter(|timestep| *timestep > 0) else {
            return fault("timestep", format!("{number} is no timestep, which is a page number from 1"));
        };
        let prompt_id = needed("prompt_id", row.prompt_id)?;
        let split = needed("split", row.split)?;
        let Some(split) = Split::from_name(&split) else {
            return fault("split", format!("`{}` is neither `train` nor `eval`", shown(&split)));
        };
        let source = needed("prompt_source", row.prompt_source)?;
        let sandbox_image = needed("sandbox_image", row.sandbox_image)?;
        if sandbox_image.is_empty() {
            return fault("sandbox_image", "is empty");
        }
        let ask = ask(&source, row.prompt_text, row.skill_card_text)?;
        let fits = match &ask {
            Ask::Free { .. } => prompt_id.strip_prefix("free:").is_some_and(is_token),
            Ask::Skill { .. } => prompt_id == source,
        };
        if !fits {
            let wanted = if source == "free" { "`free:SLUG`".to_owned() } else { format!("`{}`", shown(&source)) };
            return fault("prompt_id", format!("`{}` is not {wanted}, as prompt_source says", shown(&prompt_id)));
        }
        Ok(Self { case_id, timestep, prompt_id, split, ask, sandbox_image })
    }
}

fn ask(source: &str, text: Option<String>, card: Option<Arc<str>>) -> Result<Ask, RowFault> {
    if source == "free" {
        if card.is_some() {
            return fault("skill_card_text", "is set on a free prompt, where it is null");
        }
        return Ok(Ask::Free { text: filled("prompt_text", text, str::is_empty, "a free prompt")? });
    }
    let Some(name) = source.strip_prefix("skill:").filter(|name| is_token(name)) else {
        return fault("prompt_source", format!("`{}` is neither `free` nor `skill:NAME`", shown(source)));
    };
    if text.is_some() {
        return fault("prompt_text", "is set on a skill prompt, where it is null");
    }
    let card = filled("skill_card_text", card, |card| card.is_empty(), "a skill prompt")?;
    Ok(Ask::Skill { name: name.to_owned(), card })
}

fn needed<T>(column: &'static str, value: Option<T>) -> Result<T, RowFault> {
    value.ok_or_else(|| RowFault { column, what: "is null".to_owned() })
}

fn filled<T: std::ops::Deref<Target = str>>(
    column: &'static str,
    value: Option<T>,
    is_empty: impl Fn(&str) -> bool,
    of: &str,
) -> Result<T, RowFault> {
    match value {
        None => fault(column, format!("is null on {of}")),
        Some(value) if is_empty(&value) => fault(column, format!("is empty on {of}")),
        Some(value) => Ok(value),
    }
}

fn fault<T>(column: &'static str, what: impl Into<String>) -> Result<T, RowFault> {
    Err(RowFault { column, what: what.into() })
}

/// A skill name or slug (`corpus.md` section 2).
fn is_token(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn is_case_id(text: &str) -> bool {
    let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut bytes = text.bytes();
    bytes.next().is_some_and(small) && bytes.all(|byte| small(byte) || b"_-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill() -> RawRow {
        RawRow {
            case_id: Some("case_1".into()),
            timestep: Some(3),
            prompt_id: Some("skill:sum".into()),
            split: Some("eval".into()),
            prompt_source: Some("skill:sum".into()),
            prompt_text: None,
            skill_card_text: Some("# Card\r\n".into()),
            sandbox_image: Some("i:1".into()),
        }
    }

    #[test]
    fn a_row_and_its_task_say_the_same() {
        let task = TaskRow::try_from(skill()).unwrap();
        assert_eq!(RawRow::from(&task), skill());
        assert_eq!(task.ask.instruction(), "# Card\r\n");
        let free = RawRow {
            prompt_id: Some("free:B".into()),
            prompt_source: Some("free".into()),
            prompt_text: Some(" ".into()),
            skill_card_text: None,
            ..skill()
        };
        assert_eq!(RawRow::from(&TaskRow::try_from(free.clone()).unwrap()), free);
    }

    #[test]
    fn what_is_odd_names_its_column() {
        type Edit = fn(&mut RawRow);
        let odd: &[(&str, Edit)] = &[
            ("case_id is null", |row| row.case_id = None),
            ("case_id `Case\\n` is no case id", |row| row.case_id = Some("Case\n".into())),
            ("timestep is null", |row| row.timestep = None),
            ("timestep 0 is no timestep", |row| row.timestep = Some(0)),
            ("timestep -9223372036854775808 is no", |row| row.timestep = Some(i64::MIN)),
            ("prompt_id is null", |row| row.prompt_id = None),
            ("prompt_id `skill:other` is not `skill:sum`", |row| row.prompt_id = Some("skill:other".into())),
            ("split `test` is neither", |row| row.split = Some("test".into())),
            ("prompt_source is null", |row| row.prompt_source = None),
            ("prompt_source `skill:` is neither", |row| row.prompt_source = Some("skill:".into())),
            ("prompt_text is set on a skill prompt", |row| row.prompt_text = Some("x".into())),
            ("skill_card_text is null on a skill prompt", |row| row.skill_card_text = None),
            ("prompt_text is null on a free prompt", |row| {
                row.prompt_source = Some("free".into());
                row.skill_card_text = None;
            }),
            ("skill_card_text is set on a free prompt", |row| row.prompt_source = Some("free".into())),
            ("prompt_id `skill:sum` is not `free:SLUG`", |row| {
                row.prompt_source = Some("free".into());
                row.skill_card_text = None;
                row.prompt_text = Some("x".into());
            }),
            ("sandbox_image is empty", |row| row.sandbox_image = Some("".into())),
        ];
        for (wanted, edit) in odd {
            let mut row = skill();
            edit(&mut row);
            let said = TaskRow::try_from(row).unwrap_err().to_string();
            assert!(said.starts_with(wanted), "{said:?} does not begin with {wanted:?}");
        }
    }

    #[test]
    fn tasks_are_ordered_by_number_and_code_point() {
        let key = |timestep, prompt: &str| TaskKey { case_id: "a".into(), timestep, prompt_id: prompt.into() };
        let sorted = [key(2, "skill:a"), key(10, "free:B"), key(10, "free:a"), key(10, "skill:B")];
        assert!(sorted.is_sorted());
    }
}
