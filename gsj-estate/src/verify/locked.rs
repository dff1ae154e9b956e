//! The lock's block `corpus`, and cases that it should have forgotten.

use super::{Found, listed};
use crate::corpus::Corpus;
use crate::lock::{self, LOCK_FILE, Lock};
use crate::names::shown;
use crate::recipe::Recipe;
use crate::report::Place;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

pub(super) fn check(corpus: &Corpus, lock: &Lock, owner: &str, recipe: Recipe, partial: bool, found: &mut Found) {
    let place = Place::corpus("lock").of_file(LOCK_FILE);
    if !partial {
        let gone: Vec<String> = lock
            .case_ids()
            .filter(|id| !corpus.cases.contains_key(*id))
            .map(|id| format!("the case `{}` is in the lock and not in the tree", shown(id)))
            .collect();
        found.judge(&place, "verify.lock", &gone, format!("{} cases, all of them in the tree", corpus.cases.len()));
    }
    let wanted = lock::head(corpus, owner, recipe);
    let empty = Map::new();
    let want = wanted.as_object().unwrap_or(&empty);
    let have = lock.corpus().and_then(Value::as_object).unwrap_or(&empty);
    let mut wrong = Vec::new();
    for key in have.keys().chain(want.keys()).collect::<BTreeSet<_>>() {
        // The reference recipe is named or not, as the lock's writer likes.
        let named = key == "recipe" && recipe == Recipe::Reference;
        if have.get(key) != want.get(key) && !named {
            let text = |value: Option<&Value>| {
                value.map_or_else(|| "nothing".to_owned(), |value| listed(&[shown(&value.to_string())]))
            };
            let (have, want) = (text(have.get(key)), text(want.get(key)));
            wrong.push(format!("{}: the lock has {have}, corpus.yaml gives {want}", shown(key)));
        }
    }
    found.judge(&place, "verify.lock-corpus", &wrong, "the block corpus is as corpus.yaml gives it");
}
