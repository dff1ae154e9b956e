//! The kinds of a turn's context in a certificate.

/// How the context that an engine was given for a turn relates to what the trace says before that turn
/// (section 11.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ContextKind {
    /// The same ids.
    #[default]
    Exact,
    /// Other ids of the same text.
    Retokenized,
    /// But for what the template adds to or takes from earlier replies, the same text.
    Template,
    /// Another text.
    Rewritten,
    /// Other ids; nothing can say more.
    Inexact,
}

impl ContextKind {
    /// All kinds, in the order in which a certificate counts them.
    pub const ALL: [Self; 5] = [Self::Exact, Self::Retokenized, Self::Template, Self::Rewritten, Self::Inexact];

    /// The name as it stands in certificates.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Retokenized => "retokenized",
            Self::Template => "template",
            Self::Rewritten => "rewritten",
            Self::Inexact => "inexact",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
