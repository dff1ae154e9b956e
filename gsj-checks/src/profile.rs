//! The two sets of rules.

use std::fmt;
use std::str::FromStr;

use crate::PolicyError;

/// Which set of rules judges.
///
/// ```
/// use gsj_checks::Profile;
/// assert_eq!("reference".parse(), Ok(Profile::Reference));
/// assert_eq!(Profile::default(), Profile::Strict);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Profile {
    /// The reference's rules, and a rule against each way in which it lets a bad trace through
    /// (`checks.md` section 13.1). Needs pins that are whole.
    #[default]
    Strict,
    /// The answer of the Python reference, byte for byte.
    Reference,
}

impl Profile {
    /// Both, the default first.
    pub const ALL: [Self; 2] = [Self::Strict, Self::Reference];

    /// The name that [`Profile::from_str`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Reference => "reference",
        }
    }
}

impl FromStr for Profile {
    type Err = PolicyError;

    fn from_str(name: &str) -> Result<Self, PolicyError> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.name() == name)
            .ok_or_else(|| PolicyError::UnknownProfile { name: name.to_owned() })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
