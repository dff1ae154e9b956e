//! The compact form: three canonical base64url parts, signed by jsonwebtoken's HMAC.

use super::{Secret, TokenError, json::Json};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, crypto};
use serde::Serialize;
use std::collections::BTreeMap;

/// The header of every minted token.
const HEADER: &[u8] = br#"{"alg":"HS256","typ":"JWT"}"#;

/// Longer texts are refused unread; a token of ours has some 250 characters.
const LONGEST: usize = 16 * 1024;

/// The claims of an episode token in the order in which they are written.
#[derive(Serialize)]
pub(super) struct EpisodePayload<'a> {
    pub(super) case_id: &'a str,
    pub(super) timestep: u32,
    pub(super) episode_id: &'a str,
    pub(super) exp: i64,
}

/// The claims of an admin token in the order in which they are written.
#[derive(Serialize)]
pub(super) struct AdminPayload<'a> {
    pub(super) admin: &'a str,
    pub(super) exp: i64,
}

pub(super) fn sign(payload: &impl Serialize, secret: &Secret) -> Result<String, TokenError> {
    let payload = serde_json::to_vec(payload).map_err(|_| TokenError::Sign)?;
    let key = EncodingKey::from_secret(secret.bytes()).map_err(|_| TokenError::Sign)?;
    let mut token = URL_SAFE_NO_PAD.encode(HEADER);
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(payload, &mut token);
    let signature = crypto::sign(token.as_bytes(), &key, Algorithm::HS256).map_err(|_| TokenError::Sign)?;
    token.push('.');
    token.push_str(&signature);
    Ok(token)
}

/// Checks form, header and signature, in this order, and gives the claims.
pub(super) fn open(token: &str, secrets: &[Secret]) -> Result<BTreeMap<String, Json>, TokenError> {
    if secrets.is_empty() {
        return Err(TokenError::NoSecret);
    }
    if token.len() > LONGEST {
        return Err(TokenError::Malformed { what: "it is longer than any token of ours" });
    }
    let mut parts = token.split('.');
    let (Some(header), Some(payload), Some(signature), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(TokenError::Malformed { what: "it does not have three parts" });
    };
    let header_bytes = decode(header, "the header is not canonical base64url")?;
    let payload_bytes = decode(payload, "the payload is not canonical base64url")?;
    decode(signature, "the signature is not canonical base64url")?;
    let header = Json::parse_object(&header_bytes)
        .ok_or(TokenError::Malformed { what: "the header is not a JSON object with each name once" })?;
    check_header(&header)?;

    let signed = &token.as_bytes()[..token.len() - signature.len() - 1];
    // Every secret is tried, so that the time taken does not tell which one signed.
    let mut verified = false;
    for secret in secrets {
        let key = DecodingKey::from_secret(secret.bytes()).map_err(|_| TokenError::Signature)?;
        verified |= crypto::verify(signature, signed, &key, Algorithm::HS256).unwrap_or(false);
    }
    if !verified {
        return Err(TokenError::Signature);
    }
    Json::parse_object(&payload_bytes)
        .ok_or(TokenError::Malformed { what: "the payload is not a JSON object with each name once" })
}

fn decode(part: &str, what: &'static str) -> Result<Vec<u8>, TokenError> {
    // This engine takes neither padding nor stray low bits in the last character.
    URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed { what })
}

fn check_header(header: &BTreeMap<String, Json>) -> Result<(), TokenError> {
    if header.get("alg") != Some(&Json::Text("HS256".into())) {
        return Err(TokenError::Header { what: "its algorithm is not HS256" });
    }
    if !matches!(header.get("kid"), None | Some(Json::Text(_))) {
        return Err(TokenError::Header { what: "its key id is not a string" });
    }
    // One extension is known, `b64` (RFC 7797), and only true, which is what it is without; false would change what is
    // signed. Whatever else is critical is unknown.
    let plain = matches!(header.get("b64"), None | Some(Json::Bool(true)));
    let critical = match header.get("crit") {
        None => true,
        Some(Json::List(names)) => {
            let known = |name: &Json| *name == Json::Text("b64".into()) && header.contains_key("b64");
            !names.is_empty() && names.iter().all(known)
        }
        Some(_) => false,
    };
    if !plain || !critical {
        return Err(TokenError::Header { what: "it asks for an extension" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_known_extension_may_be_named_and_must_change_nothing() {
        let of = |members: &str| {
            let header = format!(r#"{{"alg":"HS256"{members}}}"#);
            check_header(&Json::parse_object(header.as_bytes()).expect("an object")).is_ok()
        };
        for members in ["", r#","b64":true"#, r#","b64":true,"crit":["b64"]"#] {
            assert!(of(members), "{members}");
        }
        for members in [
            r#","b64":false"#,
            r#","b64":1"#,
            r#","crit":[]"#,
            r#","crit":["b64"]"#,
            r#","crit":"b64","b64":true"#,
            r#","crit":["b64","exp"],"b64":true"#,
            r#","crit":["b64"],"b64":false"#,
        ] {
            assert!(!of(members), "{members}");
        }
    }
}
