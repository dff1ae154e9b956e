//! The first inputs of each target and the words that it tries: from the shared vectors, the fixtures and the inputs
//! that once failed. Written below the target folder, never committed.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gsj_trace::json::{Value, ValueRef};

use crate::tools;

/// Longest seed in bytes; the real bodies' longer ones would only be cut.
const LONGEST: usize = 40_000;
/// Longest word of the dictionary.
const LONGEST_WORD: usize = 24;
/// Seeds of random choices, for targets that make their input from choices.
const CHOICES: u64 = 200;

/// Writes corpus and words of a target; returns how many seeds there were.
pub(crate) fn write(target: &str, folder: &Path) -> io::Result<usize> {
    let folder = folder.join(target);
    let corpus = folder.join("corpus");
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(folder.join("artifacts"))?;
    let mut seeds = Vec::new();
    let vectors = tools::root().join("../shared/vectors/checks");
    if !vectors.is_dir() {
        eprintln!("xtask: SKIPPED: {} is not there; fewer seeds", vectors.display());
    }
    match target {
        "reader" => {
            of_vectors(&vectors, "canonical.jsonl", &mut seeds);
            of_vectors(&vectors, "checks.mutated.jsonl", &mut seeds);
            files(&vectors.join("raw"), &mut seeds);
        }
        "validators" => {
            of_vectors(&vectors, "checks.mutated.jsonl", &mut seeds);
            of_vectors(&vectors, "checks.real.jsonl", &mut seeds);
            files(&vectors.join("raw"), &mut seeds);
            seeds.extend((1..=CHOICES).map(|seed| choices(1, seed)));
        }
        "pins" => {
            pins_of_vectors(&vectors, &mut seeds);
            files(&vectors.join("pins"), &mut seeds);
            files(&tools::root().join("fixtures/pins"), &mut seeds);
        }
        _ => {
            of_vectors(&vectors, "reconstruct.jsonl", &mut seeds);
            seeds.extend((1..=CHOICES).map(|seed| choices(0, seed)));
        }
    }
    files(&tools::root().join("fuzz/regressions").join(target), &mut seeds);
    seeds.retain(|seed| seed.len() <= LONGEST);
    for (n, seed) in seeds.iter().enumerate() {
        std::fs::write(corpus.join(format!("seed-{n:05}")), seed)?;
    }
    std::fs::write(folder.join("words"), words(&seeds))?;
    Ok(seeds.len())
}

/// The inputs of a file of vectors.
fn of_vectors(vectors: &Path, name: &str, seeds: &mut Vec<Vec<u8>>) {
    for line in std::fs::read_to_string(vectors.join(name)).unwrap_or_default().lines() {
        let Ok(vector) = Value::parse(line.as_bytes()) else { continue };
        let text = |key: &str| vector.get(key).and_then(ValueRef::as_str);
        if let Some(input) = vector.get("input") {
            seeds.push(input.to_json().into_bytes());
        } else if let Some(input) = text("input_text") {
            seeds.push(input.as_bytes().to_vec());
        } else if let Some(input) = text("input_b64").and_then(|input| STANDARD.decode(input).ok()) {
            seeds.push(input);
        } else if let Some(input) = text("input_file").and_then(|file| std::fs::read(vectors.join(file)).ok()) {
            seeds.push(input);
        }
    }
}

fn pins_of_vectors(vectors: &Path, seeds: &mut Vec<Vec<u8>>) {
    for line in std::fs::read_to_string(vectors.join("pins.jsonl")).unwrap_or_default().lines() {
        let Ok(vector) = Value::parse(line.as_bytes()) else { continue };
        match vector.get("pins") {
            Some(pins) if pins.get("kind").is_none() => seeds.push(pins.to_json().into_bytes()),
            Some(pins) => {
                seeds.extend(pins.get("text").and_then(ValueRef::as_str).map(|text| text.as_bytes().to_vec()));
            }
            None => {}
        }
    }
}

fn files(folder: &Path, seeds: &mut Vec<Vec<u8>>) {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    seeds.extend(paths.into_iter().filter_map(|path| std::fs::read(path).ok()));
}

/// Choices that look random and are always the same, after a byte that no JSON document begins with.
fn choices(first: u8, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let length = 40 + seed * 2;
    let rest = (0..length).map(|_| {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).to_le_bytes()[0]
    });
    std::iter::once(first).chain(rest).collect()
}

/// Names and short texts of the seeds, and what JSON is made of, in libFuzzer's form.
fn words(seeds: &[Vec<u8>]) -> String {
    let mut words: BTreeSet<String> =
        ["null", "true", "false", "NaN", "-Infinity", "1e400", "-0.0", "\\ud83d", "\\ude00", "\",\"", "[[", "]]"]
            .map(str::to_owned)
            .into();
    for seed in seeds {
        let Ok(value) = Value::parse(seed) else { continue };
        let mut open = vec![value.as_ref()];
        while let Some(value) = open.pop() {
            match value {
                ValueRef::Object(object) => {
                    for (key, member) in object {
                        words.extend(key.as_str().map(|key| format!("\"{key}\":")));
                        open.push(member);
                    }
                }
                ValueRef::Array(array) => open.extend(array.iter()),
                ValueRef::Str(text) => words.extend(text.as_str().map(|text| format!("\"{text}\""))),
                _ => {}
            }
        }
    }
    let plain = |word: &&String| word.len() <= LONGEST_WORD && word.bytes().all(|b| (b' '..0x7f).contains(&b));
    words
        .iter()
        .filter(plain)
        .map(|word| format!("\"{}\"\n", word.replace('\\', "\\\\").replace('"', "\\\"")))
        .collect()
}
