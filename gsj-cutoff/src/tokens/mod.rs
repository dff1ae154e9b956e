//! Scoped tokens: JSON Web Tokens signed with HMAC-SHA-256 and nothing else.
//!
//! An *episode token* opens the retrieval tools for one case up to one timestep; an *admin token* opens one
//! administrative action. Neither passes for the other, and a token that carries the claims of both passes nowhere.
//!
//! One token has one spelling: canonical base64url without padding, no name twice in any JSON object, seconds as
//! numbers. The clock and the leeway are arguments, and `exp` is judged here, so that a verdict can be reproduced.
//! No error carries a part of a token.

mod error;
mod json;
mod secret;
mod wire;

pub use error::{Reason, TokenError};
pub use secret::Secret;

use json::Json;
use std::collections::BTreeMap;

/// The life of an episode token where nothing else is said, in seconds.
pub const EPISODE_TTL_S: i64 = 3600;

/// The life of an admin token, in seconds.
pub const ADMIN_TTL_S: i64 = 300;

/// The leeway of the verifiers where nothing else is said, in seconds.
pub const LEEWAY_S: i64 = 30;

/// The one administrative action that a token can open: reading the corpus anew.
pub const ADMIN_REINDEX: &str = "reindex";

/// What an episode token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The case that may be read; not empty.
    pub case_id: String,
    /// The last page that may be seen; at least 1. Whether the case has that page, the caller checks.
    pub timestep: u32,
    /// Names the episode in logs; not empty.
    pub episode_id: String,
    /// Seconds since 1970 from which on the token is refused (the leeway aside).
    pub exp: i64,
}

/// Mints an episode token.
///
/// # Errors
/// Refuses claims that no verifier would accept (an empty id, timestep 0).
pub fn mint(claims: &Claims, secret: &Secret) -> Result<String, TokenError> {
    if claims.case_id.is_empty() {
        return Err(TokenError::Claim { name: "case_id", problem: "is empty" });
    }
    if claims.episode_id.is_empty() {
        return Err(TokenError::Claim { name: "episode_id", problem: "is empty" });
    }
    if claims.timestep == 0 {
        return Err(TokenError::TimestepRange { timestep: 0 });
    }
    wire::sign(
        &wire::EpisodePayload {
            case_id: &claims.case_id,
            timestep: claims.timestep,
            episode_id: &claims.episode_id,
            exp: claims.exp,
        },
        secret,
    )
}

/// Mints an admin token for [`ADMIN_REINDEX`] that is good until `exp` (seconds since 1970).
///
/// # Errors
/// Fails only when the signer does.
pub fn mint_admin(exp: i64, secret: &Secret) -> Result<String, TokenError> {
    wire::sign(&wire::AdminPayload { admin: ADMIN_REINDEX, exp }, secret)
}

/// Verifies an episode token as at `now` (seconds since 1970) against any of `secrets`.
///
/// A token is expired when `exp <= now - leeway`. Several secrets are for rotation: the token passes when one of them
/// signed it.
///
/// # Errors
/// Says which part failed; [`TokenError::reason`] gives the short reason for a log.
pub fn verify(token: &str, secrets: &[Secret], now: i64, leeway: i64) -> Result<Claims, TokenError> {
    let (claims, exp) = opened(token, secrets, now, leeway)?;
    if claims.contains_key("admin") {
        return Err(TokenError::Claim { name: "admin", problem: "has no place in an episode token" });
    }
    let case_id = text(&claims, "case_id")?;
    let timestep = match claims.get("timestep") {
        Some(Json::Int(number)) => *number,
        Some(_) => return Err(TokenError::Claim { name: "timestep", problem: "is not an integer" }),
        None => return Err(TokenError::Claim { name: "timestep", problem: "is missing" }),
    };
    let episode_id = text(&claims, "episode_id")?;
    let page = u32::try_from(timestep).ok().filter(|page| *page > 0);
    let timestep = page.ok_or(TokenError::TimestepRange { timestep })?;
    Ok(Claims { case_id, timestep, episode_id, exp })
}

/// Verifies an admin token for [`ADMIN_REINDEX`] and gives its `exp`; clock, leeway and secrets as in [`verify`].
///
/// # Errors
/// As [`verify`]; a token that also carries an episode's claims is refused.
pub fn verify_admin(token: &str, secrets: &[Secret], now: i64, leeway: i64) -> Result<i64, TokenError> {
    let (claims, exp) = opened(token, secrets, now, leeway)?;
    for name in ["case_id", "timestep", "episode_id"] {
        if claims.contains_key(name) {
            return Err(TokenError::Claim { name, problem: "has no place in an admin token" });
        }
    }
    match claims.get("admin") {
        Some(Json::Text(action)) if action == ADMIN_REINDEX => Ok(exp),
        Some(_) => Err(TokenError::Claim { name: "admin", problem: "names no known action" }),
        None => Err(TokenError::Claim { name: "admin", problem: "is missing" }),
    }
}

/// Checks form, signature and the registered claims; gives the claims and `exp`.
fn opened(token: &str, secrets: &[Secret], now: i64, leeway: i64) -> Result<(BTreeMap<String, Json>, i64), TokenError> {
    let claims = wire::open(token, secrets)?;
    for name in ["iat", "nbf"] {
        if let Some(value) = claims.get(name) {
            let from = value.seconds().ok_or(TokenError::Registered { name, problem: "is not a number" })?;
            if from > now.saturating_add(leeway) {
                return Err(TokenError::Registered { name, problem: "lies in the future" });
            }
        }
    }
    let exp = match claims.get("exp") {
        Some(value) => value.seconds().ok_or(TokenError::Registered { name: "exp", problem: "is not a number" })?,
        None => return Err(TokenError::Registered { name: "exp", problem: "is missing" }),
    };
    if exp <= now.saturating_sub(leeway) {
        return Err(TokenError::Expired { exp, now });
    }
    if !matches!(claims.get("aud"), None | Some(Json::Null)) {
        return Err(TokenError::Registered { name: "aud", problem: "names an audience, and none is expected" });
    }
    for name in ["sub", "jti"] {
        if !matches!(claims.get(name), None | Some(Json::Text(_))) {
            return Err(TokenError::Registered { name, problem: "is not a string" });
        }
    }
    Ok((claims, exp))
}

fn text(claims: &BTreeMap<String, Json>, name: &'static str) -> Result<String, TokenError> {
    match claims.get(name) {
        Some(Json::Text(text)) if !text.is_empty() => Ok(text.clone()),
        Some(Json::Text(_)) => Err(TokenError::Claim { name, problem: "is empty" }),
        Some(_) => Err(TokenError::Claim { name, problem: "is not a string" }),
        None => Err(TokenError::Claim { name, problem: "is missing" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_790_000_000;

    fn secret(byte: u8) -> Secret {
        Secret::new(vec![byte; 32]).expect("32 bytes are enough")
    }

    fn claims() -> Claims {
        Claims { case_id: "case_0001".into(), timestep: 5, episode_id: "ep-1".into(), exp: NOW + 3600 }
    }

    #[test]
    fn the_minted_form_is_the_specified_bytes() {
        let secret = Secret::new(b"vector-secret-0123456789abcdef0123456789abcdef".to_vec()).expect("long enough");
        let token = mint(&claims(), &secret).expect("valid claims");
        // Header {"alg":"HS256","typ":"JWT"}, claims in the order case_id, timestep, episode_id, exp.
        assert_eq!(
            token,
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJjYXNlX2lkIjoiY2FzZV8wMDAxIiwidGltZXN0ZXAiOjUsImVwaXNvZGVfaWQiOiJl\
             cC0xIiwiZXhwIjoxNzkwMDAzNjAwfQ.n_eUNkTy5EUFp-yazllnaf5z5YMHjryC4afTBWZy1eo"
        );
    }

    #[test]
    fn a_rotated_secret_still_verifies_and_a_foreign_one_does_not() {
        let token = mint(&claims(), &secret(1)).expect("valid claims");
        assert_eq!(verify(&token, &[secret(2), secret(1)], NOW, 30).expect("second secret signed it"), claims());
        assert!(matches!(verify(&token, &[secret(2)], NOW, 30), Err(TokenError::Signature)));
        assert!(matches!(verify(&token, &[], NOW, 30), Err(TokenError::NoSecret)));
    }

    #[test]
    fn the_leeway_ends_at_the_second() {
        let token = mint(&claims(), &secret(1)).expect("valid claims");
        let at = |now| verify(&token, &[secret(1)], now, 30);
        assert!(at(NOW + 3600 + 29).is_ok());
        assert!(matches!(at(NOW + 3600 + 30), Err(TokenError::Expired { .. })));
        assert!(at(i64::MIN).is_ok(), "arithmetic must not overflow");
        assert!(at(i64::MAX).is_err());
    }

    #[test]
    fn episode_and_admin_tokens_do_not_pass_for_each_other() {
        let episode = mint(&claims(), &secret(1)).expect("valid claims");
        let admin = mint_admin(NOW + 300, &secret(1)).expect("signs");
        assert_eq!(verify_admin(&admin, &[secret(1)], NOW, 30).expect("admin token"), NOW + 300);
        assert!(verify_admin(&episode, &[secret(1)], NOW, 30).is_err());
        assert!(verify(&admin, &[secret(1)], NOW, 30).is_err());
    }

    #[test]
    fn a_token_with_the_claims_of_both_passes_nowhere() {
        #[derive(serde::Serialize)]
        struct Both {
            case_id: &'static str,
            timestep: u32,
            episode_id: &'static str,
            exp: i64,
            admin: &'static str,
        }
        let both = Both { case_id: "case_0001", timestep: 5, episode_id: "ep-1", exp: NOW + 60, admin: ADMIN_REINDEX };
        let token = wire::sign(&both, &secret(1)).expect("signs");
        assert!(verify(&token, &[secret(1)], NOW, 30).is_err());
        assert!(verify_admin(&token, &[secret(1)], NOW, 30).is_err());
    }

    #[test]
    fn claims_that_could_not_be_verified_are_not_minted() {
        for bad in [
            Claims { case_id: String::new(), ..claims() },
            Claims { episode_id: String::new(), ..claims() },
            Claims { timestep: 0, ..claims() },
        ] {
            assert!(mint(&bad, &secret(1)).is_err());
        }
    }

    #[test]
    fn no_error_and_no_debug_text_holds_a_part_of_the_token_or_secret() {
        let token = mint(&claims(), &secret(b'k')).expect("valid claims");
        let error = verify(&token, &[secret(2)], NOW, 30).expect_err("foreign secret");
        let body = token.split('.').nth(1).expect("three parts");
        for text in [format!("{error}"), format!("{error:?}"), format!("{:?}", secret(b'k'))] {
            assert!(!text.contains(body) && !text.contains("kkkk") && !text.contains("107"), "leaks: {text}");
        }
    }
}
