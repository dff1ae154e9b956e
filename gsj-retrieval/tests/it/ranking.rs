//! Which pages are found, and why.

use gsj_retrieval::CaseIndex;
use proptest::collection::vec;
use proptest::prelude::*;

/// Few words, so that scores are equal often; some are function words, some stand everywhere.
fn word() -> impl Strategy<Value = String> {
    (0_u32..40).prop_map(|number| match number {
        0..12 => "the".to_owned(),
        12..16 => "of".to_owned(),
        16..20 => "crates".to_owned(),
        20 => "SN-0100031".to_owned(),
        _ => format!("w{}x", char::from(b'a' + u8::try_from(number % 20).unwrap_or(0))),
    })
}

fn page() -> impl Strategy<Value = String> {
    let sentence = vec(word(), 1..9).prop_map(|words| words.join(" "));
    vec(sentence, 0..5).prop_map(|sentences| sentences.join(".\n\n"))
}

/// The higher the number, the rarer.
fn common_word(number: u32) -> String {
    match number {
        0..3 => ["the", "of", "und"][number as usize].to_owned(),
        20.. => format!("SN-{number:07}"),
        _ => format!("w{}x", char::from(b'a' + u8::try_from(number).unwrap_or(0))),
    }
}

/// Thirty short sentences.
fn long_page(seed: u32, page: u32) -> String {
    let mut state = u64::from(seed) << 32 | u64::from(page);
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((state >> 33) % limit).unwrap_or(0)
    };
    let mut text = String::new();
    for _ in 0..30 {
        for _ in 0..=below(8) {
            let most = 1 + below(24);
            text.push_str(&common_word(below(u64::from(most))));
            text.push(' ');
        }
        text.push_str(".\n\n");
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The same where there are more units than are taken at a time, and lists of every length.
    #[test]
    fn the_hits_are_the_best_of_many_pages(
        seed in any::<u32>(),
        pages in 100_u32..260,
        query in vec(0_u32..24, 1..9),
        k in 1_usize..8,
        cut in 60_u32..260,
    ) {
        let pages: Vec<String> = (0..pages).map(|page| long_page(seed, page)).collect();
        let index = CaseIndex::build(&pages).expect("small");
        let timestep = cut.min(u32::try_from(pages.len()).expect("few"));
        let view = index.view(timestep).expect("a page");
        let query = query.into_iter().map(common_word).collect::<Vec<_>>().join(" ");
        let mut all: Vec<(u32, f64)> = (1..=timestep)
            .filter_map(|page| view.explain(&query, page).map(|why| (page, why.score)))
            .collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.truncate(k);
        let hits: Vec<(u32, f64)> = view.search(&query, k).into_iter().map(|hit| (hit.page, hit.score)).collect();
        prop_assert_eq!(hits, all, "{}", query);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Leaving out what cannot matter changes nothing: the hits are the first of all pages by their scores.
    #[test]
    fn the_hits_are_the_best_of_all_pages(
        pages in vec(page(), 1..40),
        query in vec(word(), 0..7).prop_map(|words| words.join(" ")),
        k in 1_usize..8,
        cut in 1_u32..40,
    ) {
        let index = CaseIndex::build(&pages).expect("small");
        let timestep = cut.min(u32::try_from(pages.len()).expect("few"));
        let view = index.view(timestep).expect("a page");
        let mut all: Vec<(u32, f64)> = (1..=timestep)
            .filter_map(|page| view.explain(&query, page).map(|why| (page, why.score)))
            .collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.truncate(k);
        let hits: Vec<(u32, f64)> = view.search(&query, k).into_iter().map(|hit| (hit.page, hit.score)).collect();
        prop_assert_eq!(hits, all);
    }

    /// What is explained is what is scored.
    #[test]
    fn the_parts_of_a_score_sum_to_it(pages in vec(page(), 1..12), query in vec(word(), 1..7)) {
        let index = CaseIndex::build(&pages).expect("small");
        let view = index.view(u32::try_from(pages.len()).expect("few")).expect("a page");
        for hit in view.search(&query.join(" "), 20) {
            let why = view.explain(&query.join(" "), hit.page).expect("it was found");
            let sum: f64 = why.terms.iter().map(|term| term.adds).sum();
            prop_assert!((sum - hit.score).abs() <= 1e-9 * hit.score, "{why:?}");
            prop_assert!(hit.text.contains(&why.unit));
        }
    }

    /// The index of the pages up to T and that of all pages give the same at T.
    #[test]
    fn later_pages_change_nothing(
        seen in vec(page(), 1..20),
        later in vec(page(), 1..20),
        query in vec(word(), 0..7).prop_map(|words| words.join(" ")),
    ) {
        let timestep = u32::try_from(seen.len()).expect("few");
        let cut = CaseIndex::build(&seen).expect("small");
        let whole = CaseIndex::build(&seen.iter().chain(&later).collect::<Vec<_>>()).expect("small");
        let (cut, whole) = (cut.view(timestep).expect("pages"), whole.view(timestep).expect("pages"));
        prop_assert_eq!(cut.search(&query, 20), whole.search(&query, 20));
        prop_assert_eq!(cut.explain(&query, 1), whole.explain(&query, 1));
    }
}

#[test]
fn other_forms_of_a_word_are_found_and_exact_identifiers_come_first() {
    let index = CaseIndex::build(&[
        "The clerk inspected the permit SN-0100032.",
        "Inspections of permits were frequent; SN-0100031 was one.",
        "Die Verträge lagen beim Gericht.",
    ])
    .expect("small");
    let view = index.view(3).expect("three pages");
    let pages = |query: &str| view.search(query, 5).into_iter().map(|hit| hit.page).collect::<Vec<_>>();
    assert_eq!(pages("SN-0100031"), [2, 1], "the same register, another number");
    assert_eq!(pages("Vertrag"), [3]);
    assert_eq!(pages("an inspection").len(), 2);
    assert_eq!(pages("!?"), [0_u32; 0]);
}

#[test]
fn words_that_stand_together_count_for_more() {
    let index = CaseIndex::build(&[
        "A bench stood by the loading crane and the empty bay.",
        "A bench stood by the empty crane and the loading bay.",
    ])
    .expect("small");
    let hits = index.view(2).expect("two pages").search("loading bay", 2);
    assert_eq!(hits.iter().map(|hit| hit.page).collect::<Vec<_>>(), [2, 1]);
}
