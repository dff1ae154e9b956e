use crate::shared;
use gsj_cutoff::scan::{Fingerprints, Match};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const VISIBLE: [&str; 2] = [
    "# Page 1: The register\n\nThe clerk found the register closed on Monday morning. The costs of the adjournment fall on \
     the plaintiff. Marta Hofstetter saw the second key in the drawer of the records room.",
    "Rules: answer from the pages alone, and name the page that you quote for every claim that you make.",
];
const LATER: &str = "# Page 7: The second key\n\nThe costs of the adjournment fall on the defendant. Nobody had asked the \
     porter for his name.\n\nOn 5 May 2019, Görlitz warehouse papers countersigned by Elena Brandmeyer list 27 crates \
     delivered\nto the Altona depot without remark. The clerk found the second key in the drawer.";

fn prints() -> Fingerprints {
    Fingerprints::of([(7, LATER)], VISIBLE)
}

fn pages(matches: &[Match]) -> Vec<u32> {
    matches.iter().map(|found| found.page).collect()
}

#[test]
fn a_quotation_is_found_in_every_dress() {
    let prints = prints();
    let quotation = "papers countersigned by Elena Brandmeyer list 27 crates delivered to the Altona depot";
    let quoted = serde_json::json!({ "text": format!("It says: \"{}\"", quotation.replace(' ', "\n> ")) }).to_string();
    let twice = serde_json::to_string(&quoted).expect("serializes");
    for text in [
        quotation.to_owned(),
        quotation.to_uppercase(),
        quotation.replace(' ', "  \n\t"),
        format!("**{}**", quotation.replace(' ', "_ _")),
        quoted,
        twice,
        "the G\\u00f6rlitz WAREHOUSE\\npapers countersigned\\u0020by Elena Brandmeyer list".to_owned(),
    ] {
        let found = prints.scan(&text);
        assert_eq!(pages(&found), [7], "{text}");
    }
}

#[test]
fn the_span_is_the_quotation_in_the_bytes_as_given() {
    let text = "before, \"Nobody had\\nasked the porter for his name.\" after";
    let found = prints().scan(text);
    assert_eq!(found.len(), 1);
    assert_eq!(&text[found[0].span.clone()], "Nobody had\\nasked the porter for his name");
}

#[test]
fn what_is_visible_too_and_what_is_short_is_no_match() {
    let prints = prints();
    for text in [
        VISIBLE[0],
        VISIBLE[1],
        "The costs of the adjournment fall on",
        "Elena Brandmeyer list 27 crates delivered to",
        "",
        "\\",
    ] {
        assert_eq!(prints.scan(text), [], "{text}");
    }
    assert!(Fingerprints::of([(2, "")], VISIBLE).is_empty());
    assert_eq!(Fingerprints::of(Vec::<(u32, &str)>::new(), VISIBLE).scan(LATER), []);
}

#[test]
fn a_sentence_put_together_from_visible_runs_is_found_as_a_whole() {
    // Every eight words of it are visible, the sentence is not.
    let visible =
        ["one two three four five six seven eight alpha. two three four five six seven eight nine ten eleven"];
    let later = "one two three four five six seven eight nine ten.";
    let prints = Fingerprints::of([(3, later)], visible);
    assert_eq!(pages(&prints.scan(later)), [3]);
    assert_eq!(prints.scan(visible[0]), []);
    // And short ones, with the first page that has them.
    let short = Fingerprints::of([(9, "The mill will be sold."), (4, "# Order\nThe mill will be sold.")], visible);
    assert_eq!(pages(&short.scan("so: the mill, will be SOLD")), [4]);
}

#[test]
fn what_a_prompt_quotes_is_allowed_in_its_session_alone() {
    let prints = prints();
    let prompt = "Is it true that nobody had asked the porter for his name?";
    let mut scanner = prints.scanner().allow(prompt);
    scanner.push(prompt.as_bytes());
    scanner.push(b" and list 27 crates delivered to the Altona depot without");
    assert_eq!(scanner.finish().len(), 1, "what the prompt does not say is still found");
    assert_eq!(prints.scan(prompt).len(), 1);
}

#[test]
fn pieces_of_any_size_give_what_the_whole_gives() {
    let prints = prints();
    let filler = "The register \\\"was\\\" closed, and \u{6771}\u{4eac} stayed. ".repeat(40);
    let text = format!("{filler}{LATER}{filler}{}{filler}", LATER.replace('\n', "\\\\n").replace('ö', "\\u00f6"));
    let whole = prints.scan(&text);
    assert!(whole.len() >= 2, "both copies are found: {whole:?}");
    for size in [1, 7, 64, 1000, 100_000] {
        let mut scanner = prints.scanner();
        text.as_bytes().chunks(size).for_each(|piece| scanner.push(piece));
        assert_eq!(scanner.finish(), whole, "pieces of {size} bytes");
    }
    // Longer than what is gathered, so that searches start in the middle of quotations.
    let long: String = (0..40).map(|_| format!("{filler}{LATER}")).collect();
    let whole = prints.scan(&long);
    for size in [4_096, 65_537] {
        let mut scanner = prints.scanner();
        long.as_bytes().chunks(size).for_each(|piece| scanner.push(piece));
        assert_eq!(scanner.finish(), whole, "pieces of {size} bytes");
    }
}

#[test]
fn hostile_text_takes_neither_memory_nor_forever() {
    let prints = prints();
    for unit in ["\\", " ", "a", "\u{ad}", "\u{6771}", "\\u", "\\ud83d", "the ", "\u{0}"] {
        let text = unit.repeat(1_200_000 / unit.len());
        let mut scanner = prints.scanner();
        text.as_bytes().chunks(10_000).for_each(|piece| scanner.push(piece));
        assert_eq!(scanner.finish(), [], "{unit:?}");
        assert_eq!(prints.scan(&text), [], "{unit:?}");
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("readable")
}

/// The pages of every case of a corpus at its largest timestep.
fn corpus(root: &Path) -> BTreeMap<String, Vec<String>> {
    let list = |path: &Path| -> Vec<_> {
        std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.expect("entry").path()).collect()
    };
    let mut cases = BTreeMap::new();
    for case in list(&root.join("train/cases")).into_iter().chain(list(&root.join("eval/cases"))) {
        let longest = list(&case).iter().map(|step| list(&step.join("pages")).len()).max().expect("a timestep");
        let pages = case.join(format!("timestep-{longest}/pages"));
        let name = case.file_name().expect("a name").to_string_lossy().into_owned();
        cases.insert(name, (1..=longest).map(|page| read(&pages.join(format!("page_{page:04}.md")))).collect());
    }
    cases
}

#[test]
fn every_sentence_of_a_later_page_that_is_new_is_found_in_both_corpora() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/corpus");
    for root in std::iter::once(fixture).chain(shared("data/staging-corpus")) {
        for (case, pages) in corpus(&root) {
            let cut = pages.len() / 3;
            let later = (1..).zip(&pages).skip(cut);
            let prints = Fingerprints::of(later, &pages[..cut]);
            for page in &pages[..cut] {
                assert_eq!(prints.scan(page), [], "{case}: a visible page matches");
            }
            let visible = pages[..cut].join("\n").to_lowercase();
            for page in &pages[cut..] {
                let sentences = page.split("\n").flat_map(|line| line.split_inclusive(". "));
                for sentence in sentences.map(str::trim).filter(|text| text.split_whitespace().count() >= 5) {
                    if !visible.contains(&sentence.to_lowercase()) {
                        assert!(!prints.scan(sentence).is_empty(), "{case}: {sentence}");
                    }
                }
            }
        }
    }
}

#[test]
fn real_sessions_that_kept_to_their_cut_have_no_match() {
    let (Some(corpus_root), Some(bodies)) = (shared("data/staging-corpus"), shared("vectors/checks/real")) else {
        return;
    };
    let cases = corpus(&corpus_root);
    let mut scanned = 0;
    for entry in std::fs::read_dir(bodies).expect("lists") {
        let path = entry.expect("entry").path();
        let text = read(&path);
        let Ok(body) = serde_json::from_str::<Value>(&text) else { continue };
        let metadata = &body["trajectory"]["traces"][0]["metadata"];
        let (Some(case), Some(timestep)) = (metadata["case_id"].as_str(), metadata["timestep"].as_u64()) else {
            continue;
        };
        let Some(pages) = cases.get(case) else { continue };
        let cut = usize::try_from(timestep).expect("small").min(pages.len());
        let prints = Fingerprints::of((1..).zip(pages).skip(cut), &pages[..cut]);
        assert_eq!(prints.scan(&text), [], "{}", path.display());
        scanned += 1;
    }
    assert!(scanned > 0, "no real session belongs to the corpus");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_planted_sentence_is_always_found_and_visible_text_never(
        visible in proptest::collection::vec("([A-Za-zé]{1,8}[ ,\\n]){0,40}", 1..4),
        sentence in "([A-Za-zé]{2,9} ){4,30}[A-Za-z]{9}\\.",
        before in "([a-z]{1,8}[ .\\n]){0,20}",
        after in "( [a-z]{1,8}[.\\n]?){0,20}",
        around in "[a-z {}\":\\\\]{0,30}",
        times in 0..3,
        size in 1usize..200,
    ) {
        let page = format!("{before}\n{sentence}{after}");
        let prints = Fingerprints::of([(3, &page)], &visible);
        for text in &visible {
            prop_assert_eq!(prints.scan(text), []);
        }
        let mut planted = format!("{around} {sentence} {around}");
        for _ in 0..times {
            planted = serde_json::to_string(&planted).expect("serializes");
        }
        let found = prints.scan(&planted);
        prop_assert!(found.iter().any(|found| found.page == 3), "{:?}", planted);
        let mut scanner = prints.scanner();
        planted.as_bytes().chunks(size).for_each(|piece| scanner.push(piece));
        prop_assert_eq!(scanner.finish(), found);
    }

    #[test]
    fn scanning_never_panics(text in proptest::collection::vec(any::<u8>(), 0..400)) {
        let found = prints().scan(&text);
        for found in found {
            prop_assert!(found.span.end <= text.len());
        }
    }
}
