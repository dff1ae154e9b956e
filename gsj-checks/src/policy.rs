//! What a caller may choose.

use crate::Profile;

/// The profile and the knobs of `checks.md` section 6; the last four speak to the strict profile only.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Which rules. Default strict.
    pub profile: Profile,
    /// A logprob at mask 1 at or below this is a sentinel (LP3). Default -9000.
    pub sentinel_threshold: f64,
    /// LP6 fires when the share of exact zeros at mask 1 is greater. Default 0.25.
    pub zero_at_mask1_max_rate: f64,
    /// Arms H41: a roster was offered and no tool was called. Default off.
    pub reject_toolless_roster: bool,
    /// Whether a body without the certificate of `checks.md` section 11.6 is a finding (F1). Off lets traces of the
    /// Python reference, which has none, through the rest of the strict rules; a certificate that is there is judged
    /// either way. Default on.
    pub require_fidelity: bool,
    /// How many turns of a trace may follow on a context that differs from what the trace says before them (F3).
    /// Default 0.
    pub max_inexact_contexts: u64,
    /// Whether F3 counts turns whose context has other ids and the same text. Default off.
    pub count_retokenized: bool,
    /// Accepts a session that was forked into several traces: `chains_total` must then equal their number, and the
    /// builder's S10 and S11 do not count. Default off.
    pub allow_forks: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            sentinel_threshold: -9000.0,
            zero_at_mask1_max_rate: 0.25,
            reject_toolless_roster: false,
            require_fidelity: true,
            max_inexact_contexts: 0,
            count_retokenized: false,
            allow_forks: false,
        }
    }
}

impl Policy {
    /// The names that [`Policy::set`] knows.
    pub const KEYS: [&'static str; 7] = [
        "sentinel_threshold",
        "zero_at_mask1_max_rate",
        "reject_toolless_roster",
        "require_fidelity",
        "max_inexact_contexts",
        "count_retokenized",
        "allow_forks",
    ];

    /// The defaults under a profile.
    #[must_use]
    pub fn of(profile: Profile) -> Self {
        Self { profile, ..Self::default() }
    }

    /// Sets one knob from text, as `--policy KEY=VALUE` and the `checks` section of a
    /// configuration name them.
    ///
    /// # Errors
    /// There is no such knob, or the text is not a value for it; the policy is unchanged.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), PolicyError> {
        let wrong = |expected| PolicyError::Value { key: key.to_owned(), value: value.to_owned(), expected };
        let number = || value.parse::<f64>().ok().filter(|x| !x.is_nan()).ok_or(wrong("a number"));
        let flag = || value.parse::<bool>().map_err(|_| wrong("true or false"));
        match key {
            "sentinel_threshold" => self.sentinel_threshold = number()?,
            "zero_at_mask1_max_rate" => self.zero_at_mask1_max_rate = number()?,
            "reject_toolless_roster" => self.reject_toolless_roster = flag()?,
            "require_fidelity" => self.require_fidelity = flag()?,
            "max_inexact_contexts" => {
                self.max_inexact_contexts = value.parse().map_err(|_| wrong("a count of turns: 0, 1, 2, ..."))?;
            }
            "count_retokenized" => self.count_retokenized = flag()?,
            "allow_forks" => self.allow_forks = flag()?,
            _ => return Err(PolicyError::UnknownKey { key: key.to_owned() }),
        }
        Ok(())
    }

    /// Whether several traces are as good as one.
    pub(crate) fn forks_pass(&self) -> bool {
        self.profile == Profile::Strict && self.allow_forks
    }
}

/// A profile or a knob that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// There is no such profile.
    #[error("there is no profile `{name}`; there are strict and reference")]
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
    fn strict_is_the_default_and_names_are_exact() {
        assert_eq!(Policy::default().profile, Profile::Strict);
        for profile in Profile::ALL {
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
        let error = "Strict".parse::<Profile>().expect_err("case matters").to_string();
        assert_eq!(error, "there is no profile `Strict`; there are strict and reference");
    }

    #[test]
    fn every_knob_is_set_by_its_name() {
        let mut policy = Policy::default();
        let values = ["-100", "0.5", "true", "false", "3", "true", "true"];
        for (key, value) in Policy::KEYS.into_iter().zip(values) {
            policy.set(key, value).expect("a value for the knob");
        }
        let set = Policy {
            profile: Profile::Strict,
            sentinel_threshold: -100.0,
            zero_at_mask1_max_rate: 0.5,
            reject_toolless_roster: true,
            require_fidelity: false,
            max_inexact_contexts: 3,
            count_retokenized: true,
            allow_forks: true,
        };
        assert_eq!(policy, set);
    }

    #[test]
    fn what_is_no_value_is_refused() {
        let mut policy = Policy::default();
        for key in Policy::KEYS {
            for odd in ["", "NaN", "-1e", "yes", "TRUE", " 1"] {
                assert!(policy.set(key, odd).is_err(), "{key}={odd}");
            }
        }
        assert!(policy.set("max_inexact_contexts", "-1").is_err());
        assert!(policy.set("reject_toolless_roster", "1").is_err());
        assert_eq!(policy, Policy::default(), "a refused value changes nothing");
        assert_eq!(
            policy.set("x", "1").expect_err("unknown").to_string(),
            "there is no policy `x`; there are sentinel_threshold, zero_at_mask1_max_rate, reject_toolless_roster, \
             require_fidelity, max_inexact_contexts, count_retokenized, allow_forks"
        );
    }
}
