//! What a caller may choose.

use std::fmt;
use std::str::FromStr;

/// Which set of rules judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Profile {
    /// The answer of the Python reference, byte for byte.
    #[default]
    Reference,
}

impl FromStr for Profile {
    type Err = PolicyError;

    fn from_str(name: &str) -> Result<Self, PolicyError> {
        match name {
            "reference" => Ok(Self::Reference),
            "strict" => Err(PolicyError::UnsupportedProfile { name: name.to_owned() }),
            _ => Err(PolicyError::UnknownProfile { name: name.to_owned() }),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reference => "reference",
        })
    }
}

/// The knobs of `checks.md` section 6.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Which rules.
    pub profile: Profile,
    /// A logprob at mask 1 at or below this is a sentinel (LP3). Default -9000.
    pub sentinel_threshold: f64,
    /// LP6 fires when the share of exact zeros at mask 1 is greater. Default 0.25.
    pub zero_at_mask1_max_rate: f64,
    /// Arms H41: a roster was offered and no tool was called. Default off.
    pub reject_toolless_roster: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            sentinel_threshold: -9000.0,
            zero_at_mask1_max_rate: 0.25,
            reject_toolless_roster: false,
        }
    }
}

impl Policy {
    /// The names that [`Policy::set`] knows.
    pub const KEYS: [&'static str; 3] = ["sentinel_threshold", "zero_at_mask1_max_rate", "reject_toolless_roster"];

    /// Sets one knob from text, as `--policy KEY=VALUE` and the `checks` section of a
    /// configuration name them.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), PolicyError> {
        let number = || value.parse::<f64>().ok().filter(|x| !x.is_nan());
        let wrong = |expected| PolicyError::Value { key: key.to_owned(), value: value.to_owned(), expected };
        match key {
            "sentinel_threshold" => self.sentinel_threshold = number().ok_or(wrong("a number"))?,
            "zero_at_mask1_max_rate" => self.zero_at_mask1_max_rate = number().ok_or(wrong("a number"))?,
            "reject_toolless_roster" => {
                self.reject_toolless_roster = value.parse().map_err(|_| wrong("true or false"))?;
            }
            _ => return Err(PolicyError::UnknownKey { key: key.to_owned() }),
        }
        Ok(())
    }
}

/// A profile or a knob that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The profile is specified, but its rules are not built in.
    #[error("the profile `{name}` is not supported by this version; use `reference`")]
    UnsupportedProfile {
        /// As asked for.
        name: String,
    },
    /// There is no such profile.
    #[error("there is no profile `{name}`; use `reference`")]
    UnknownProfile {
        /// As asked for.
        name: String,
    },
    /// There is no such knob.
    #[error("there is no policy `{key}`; there are {}", Policy::KEYS.join(", "))]
    UnknownKey {
        /// As asked for.
        key: String,
    },
    /// The knob's value has the wrong form.
    #[error("policy `{key}`: `{value}` is not {expected}")]
    Value {
        /// The knob.
        key: String,
        /// As given.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_is_refused_and_never_weakened() {
        assert_eq!("reference".parse(), Ok(Profile::Reference));
        let error = "strict".parse::<Profile>().expect_err("not built in");
        assert!(matches!(error, PolicyError::UnsupportedProfile { .. }), "{error}");
        assert!(matches!("lax".parse::<Profile>(), Err(PolicyError::UnknownProfile { .. })));
    }

    #[test]
    fn knobs_are_set_by_name() {
        let mut policy = Policy::default();
        policy.set("sentinel_threshold", "-100").expect("a number");
        policy.set("reject_toolless_roster", "true").expect("a boolean");
        assert_eq!(policy, Policy { sentinel_threshold: -100.0, reject_toolless_roster: true, ..Policy::default() });
        assert!(policy.set("zero_at_mask1_max_rate", "NaN").is_err());
        assert!(policy.set("reject_toolless_roster", "1").is_err());
        assert_eq!(
            policy.set("x", "1").expect_err("unknown").to_string(),
            "there is no policy `x`; there are sentinel_threshold, zero_at_mask1_max_rate, reject_toolless_roster"
        );
    }
}
