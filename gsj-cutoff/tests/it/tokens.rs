use crate::shared;
use gsj_cutoff::tokens::{Reason, Secret, TokenError, verify, verify_admin};
use proptest::prelude::*;
use serde_json::Value;

#[test]
fn every_token_vector_gets_the_wanted_verdict() {
    let Some(path) = shared("vectors/tokens/jwt.json") else { return };
    let document: Value = serde_json::from_slice(&std::fs::read(path).expect("readable")).expect("JSON");
    let secret = Secret::new(document["secret"].as_str().expect("secret").into()).expect("long enough");
    let now = document["now"].as_i64().expect("now");
    let leeway = document["leeway_s"].as_i64().expect("leeway");
    let cases = document["cases"].as_object().expect("cases");
    let vectors = document["vectors"].as_array().expect("vectors");
    assert!(vectors.len() >= 80, "the vectors shrank");

    let mut wrong = Vec::new();
    for vector in vectors {
        let token = vector["token"].as_str().expect("token");
        let secrets = std::slice::from_ref(&secret);
        // The verifier knows no cases: whether the case is served and has that page is the caller's part.
        let (accepted, reason) = if vector["kind"] == "admin" {
            outcome(verify_admin(token, secrets, now, leeway).map(|_| true))
        } else {
            outcome(verify(token, secrets, now, leeway).map(|claims| {
                let pages = cases.get(&claims.case_id).and_then(Value::as_u64);
                let fits = pages.is_some_and(|pages| u64::from(claims.timestep) <= pages);
                if fits && let Some(expected) = vector["reference"].get("claims") {
                    assert_eq!(expected["case_id"], claims.case_id.as_str());
                    assert_eq!(expected["timestep"], claims.timestep);
                    assert_eq!(expected["episode_id"], claims.episode_id.as_str());
                }
                fits
            }))
        };
        if accepted != (vector["want"] == "accept") {
            wrong.push(format!("{} {}: accepted={accepted}", vector["id"], vector["title"]));
        }
        if let (Some(reason), Some(expected)) = (reason, vector["reference"]["reason"].as_str())
            && vector["reference"]["verdict"] == "reject"
            && reason.as_str() != expected
        {
            wrong.push(format!("{} {}: reason {reason:?}, reference {expected}", vector["id"], vector["title"]));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

fn outcome(result: Result<bool, TokenError>) -> (bool, Option<Reason>) {
    match result {
        Ok(fits) => (fits, None),
        Err(error) => (false, Some(error.reason())),
    }
}

proptest! {
    #[test]
    fn changing_any_character_of_a_token_makes_it_invalid(at in 0usize..200, to in "[A-Za-z0-9_=+/. -]") {
        let secret = Secret::new(vec![9; 32]).expect("long enough");
        let claims = gsj_cutoff::tokens::Claims {
            case_id: "case_0001".into(), timestep: 5, episode_id: "ep".into(), exp: 1_790_000_000,
        };
        let token = gsj_cutoff::tokens::mint(&claims, &secret).expect("mints");
        let at = at % token.len();
        let changed = format!("{}{to}{}", &token[..at], &token[at + 1..]);
        prop_assume!(changed != token);
        prop_assert!(verify(&changed, &[secret], 0, 0).is_err());
    }

    #[test]
    fn no_text_makes_the_verifier_panic(text in ".{0,80}") {
        let secret = Secret::new(vec![9; 32]).expect("long enough");
        prop_assert!(verify(&text, std::slice::from_ref(&secret), 0, 0).is_err());
        prop_assert!(verify_admin(&text, &[secret], 0, 0).is_err());
    }
}
