//! From the text of a page to its units (sentences) and their terms.
//!
//! Everything here looks at one page at a time, so nothing can depend on a later page.

use rust_stemmers::{Algorithm, Stemmer};
use std::collections::HashMap;
use std::ops::Range;

/// The code that says what a term is, for fingerprints.
pub(crate) const CODE: &str = include_str!("text.rs");

/// Words before a full stop that do not end a sentence.
const ABBREVIATIONS: [&str; 55] = [
    "abs",
    "approx",
    "art",
    "aufl",
    "az",
    "bd",
    "bzw",
    "ca",
    "cf",
    "co",
    "col",
    "d.h",
    "dipl",
    "dipl.-ing",
    "dr",
    "e.g",
    "einschl",
    "etc",
    "evtl",
    "ff",
    "fig",
    "gen",
    "ggf",
    "hr",
    "hrsg",
    "i.d.r",
    "i.e",
    "i.v.m",
    "inc",
    "inkl",
    "insbes",
    "kap",
    "lt",
    "mio",
    "mr",
    "mrd",
    "mrs",
    "ms",
    "nr",
    "no",
    "prof",
    "resp",
    "rev",
    "rn",
    "sog",
    "st",
    "str",
    "tsd",
    "u.a",
    "vgl",
    "viz",
    "vol",
    "vs",
    "z.b",
    "zzgl",
];

/// How many letters a word has that may be an abbreviation although it is not among those.
const SHORT: usize = 3;

/// What a German ordinal ("3. Mai", "2. Instanz") stands before: its full stop ends no sentence.
const COUNTED: [&str; 19] = [
    "januar",
    "jänner",
    "februar",
    "märz",
    "april",
    "mai",
    "juni",
    "juli",
    "august",
    "september",
    "oktober",
    "november",
    "dezember",
    "instanz",
    "senat",
    "zivilsenat",
    "strafsenat",
    "kammer",
    "zivilkammer",
];

/// Splits a text into units: sentences, with headings, list items and table rows as units of their own.
///
/// The ranges are byte ranges in ascending order; between them lie only blanks.
pub(crate) fn units(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim();
        let fresh = body.is_empty() || is_marked(body);
        if fresh {
            push(text, start..line_start, &mut found);
            start = line_start;
        }
        if body.is_empty() || body.starts_with(['#', '|']) {
            // A heading or a row ends with its line, a blank line ends whatever stood before it.
            push(text, line_start..line_start + line.len(), &mut found);
            start = line_start + line.len();
        }
        line_start += line.len();
    }
    push(text, start..text.len(), &mut found);
    found.into_iter().flat_map(|block| sentences(text, block)).collect()
}

fn push(text: &str, range: Range<usize>, into: &mut Vec<Range<usize>>) {
    if text.get(range.clone()).is_some_and(|part| !part.trim().is_empty()) {
        into.push(range);
    }
}

/// Tells whether a line begins something new whatever the line before was: heading, row, or list item.
fn is_marked(line: &str) -> bool {
    if line.starts_with(['#', '|', '>']) {
        return true;
    }
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let bullet =
        if rest.len() < line.len() { rest.strip_prefix(['.', ')']) } else { rest.strip_prefix(['-', '*', '+']) };
    bullet.is_some_and(|after| after.starts_with([' ', '\t']))
}

/// Splits one block at sentence ends.
fn sentences(text: &str, block: Range<usize>) -> Vec<Range<usize>> {
    let Some(body) = text.get(block.clone()) else { return Vec::new() };
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = body.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !matches!(c, '.' | '!' | '?') {
            continue;
        }
        while chars.next_if(|(_, next)| matches!(next, '"' | '\'' | ')' | ']' | '»' | '«' | '“' | '”' | '’')).is_some()
        {
        }
        let Some(&(next_at, next)) = chars.peek() else { break };
        if !next.is_whitespace()
            || (c == '.' && !ends_sentence(body.get(start..at).unwrap_or(""), body.get(next_at..).unwrap_or("")))
        {
            continue;
        }
        found.push(block.start + start..block.start + next_at);
        start = next_at;
    }
    if body.get(start..).is_some_and(|rest| !rest.trim().is_empty()) {
        found.push(block.start + start..block.end);
    }
    found
}

/// Decides whether a full stop between `before` and `after` ends a sentence.
fn ends_sentence(before: &str, after: &str) -> bool {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or("").trim_start_matches(['(', '[', '"', '„', '“']);
    let lower = word.to_lowercase();
    if ABBREVIATIONS.contains(&lower.as_str()) || (word.chars().count() == 1 && word.chars().all(char::is_alphabetic)) {
        return false;
    }
    let ordinal = !word.is_empty() && word.len() <= 2 && word.chars().all(|c| c.is_ascii_digit());
    let next = after.trim_start();
    let counted: String = next.chars().take_while(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    // What is as short as most abbreviations, or counts, may be one before a small letter; behind a longer word a
    // sentence ends whatever it goes on with.
    let short = word.chars().count() <= SHORT;
    let continues = (short && next.starts_with(char::is_lowercase)) || (ordinal && COUNTED.contains(&counted.as_str()));
    !continues
}

/// Words, folded, that say little of what a text is about; English and German.
const FUNCTION_WORDS: [&str; 207] = [
    "a", "aber", "about", "after", "all", "alle", "als", "am", "an", "and", "any", "are", "as", "at", "auch", "auf",
    "aus", "be", "been", "before", "bei", "beim", "being", "between", "bin", "bist", "but", "by", "can", "could", "da",
    "das", "dass", "dem", "den", "der", "des", "dich", "did", "die", "diese", "diesem", "diesen", "dieser", "dieses",
    "do", "does", "du", "durch", "during", "each", "ein", "eine", "einem", "einen", "einer", "eines", "er", "es",
    "for", "from", "fuer", "fur", "gegen", "haben", "had", "has", "hat", "hatte", "hatten", "have", "he", "her",
    "here", "hier", "him", "his", "how", "i", "ich", "if", "ihm", "ihn", "ihr", "ihre", "ihrem", "ihren", "ihrer",
    "im", "in", "ins", "into", "is", "ist", "it", "its", "jede", "jeder", "jedes", "kann", "kein", "keine", "keinen",
    "konnte", "man", "may", "me", "mich", "might", "mir", "mit", "must", "my", "nach", "nicht", "no", "noch", "nor",
    "not", "nur", "oder", "of", "ohne", "on", "or", "our", "out", "over", "said", "say", "says", "schon", "sein",
    "seine", "seinem", "seinen", "seiner", "shall", "she", "should", "sich", "sie", "sind", "so", "soll", "sollte",
    "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to",
    "uber", "ueber", "um", "und", "under", "uns", "unter", "up", "us", "vom", "von", "vor", "wann", "war", "waren",
    "warum", "was", "we", "welche", "welcher", "welches", "wenn", "wer", "werden", "were", "what", "when", "where",
    "which", "who", "whom", "whose", "why", "wie", "will", "wir", "wird", "with", "wo", "would", "wurde", "wurden",
    "you", "your", "zu", "zum", "zur",
];

/// Whether a word, folded, is a function word.
pub(crate) fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.binary_search(&word).is_ok()
}

/// How many stems are kept at hand.
const KEPT_STEMS: usize = 1 << 17;

/// Brings words to their stems.
///
/// A page's language isn't asked for: every word is stemmed as English, then as German, on both sides, so a term is the
/// same wherever it stands. What holds a digit stays as it is.
pub(crate) struct Analyzer {
    english: Stemmer,
    german: Stemmer,
    stems: HashMap<Box<str>, Box<str>>,
}

impl Default for Analyzer {
    fn default() -> Self {
        let of = Stemmer::create;
        Self { english: of(Algorithm::English), german: of(Algorithm::German), stems: HashMap::new() }
    }
}

impl Analyzer {
    /// Calls `each` with every term of `text` in order of occurrence.
    pub(crate) fn terms(&mut self, text: &str, mut each: impl FnMut(&str)) {
        self.each_word(text, |_, term| each(term));
    }

    /// Calls `each` with every word, folded, and its term.
    pub(crate) fn each_word(&mut self, text: &str, mut each: impl FnMut(&str, &str)) {
        words(text, |word| {
            if word.bytes().any(|byte| byte.is_ascii_digit()) {
                each(word, word);
                return;
            }
            if let Some(stem) = self.stems.get(word) {
                each(word, stem);
                return;
            }
            let stem = without_digraphs(&self.german.stem(&self.english.stem(word)));
            each(word, &stem);
            if self.stems.len() < KEPT_STEMS {
                self.stems.insert(word.into(), stem.into());
            }
        });
    }
}

/// Writes a stem with `ae`, `oe` and `ue` as with the umlauts, which are folded: `Goerlitz` is `Görlitz`.
///
/// Not behind a vowel or a `q` (`neue`, `Quelle`), where they are no umlaut, nor in short stems, which would meet others.
fn without_digraphs(stem: &str) -> String {
    const SHORT: usize = 4;
    let mut kept = String::with_capacity(stem.len());
    let mut chars = stem.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        kept.push(c);
        if stem.len() > SHORT && matches!(c, 'a' | 'o' | 'u') && !matches!(before, 'a' | 'e' | 'i' | 'o' | 'u' | 'q') {
            chars.next_if_eq(&'e');
        }
        before = c;
    }
    kept
}

/// Calls `each` with every word of `text` in order of occurrence.
///
/// A word is a run of letters and digits, case and accents folded. Runs that are joined without a blank by `-`, `_`, `/`,
/// `.` or `:`, and the letters and digits of one run, are an identifier where they hold a digit: each part is a word, and
/// so is the whole, joined by `-`. So `SN-0100031`, `SN 0100031` and `SN0100031` share their words.
fn words(text: &str, mut each: impl FnMut(&str)) {
    let mut whole = String::new();
    let mut run = String::new();
    let mut parts = 0_usize;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if !first.is_alphanumeric() {
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            let joins = matches!(first, '-' | '_' | '/' | '.' | ':' | '\u{2010}'..='\u{2013}')
                && rest.starts_with(char::is_alphanumeric);
            if !joins {
                finish(&mut whole, &mut parts, &mut each);
            }
            continue;
        }
        run.clear();
        rest = match grouped(rest, &mut run).filter(|_| parts == 0) {
            Some(after) => after,
            None => taken(rest, &mut run),
        };
        for part in parts_of(&run) {
            each(part);
            if parts > 0 {
                whole.push('-');
            }
            whole.push_str(part);
            parts += 1;
        }
        rest = without_possessive(rest);
    }
    finish(&mut whole, &mut parts, &mut each);
}

fn finish(whole: &mut String, parts: &mut usize, each: &mut impl FnMut(&str)) {
    if *parts > 1 && whole.bytes().any(|byte| byte.is_ascii_digit()) {
        each(whole);
    }
    whole.clear();
    *parts = 0;
}

/// Folds the run that `text` begins with into `run`; gives what stands behind it.
fn taken<'t>(text: &'t str, run: &mut String) -> &'t str {
    run.clear();
    let end = text.find(|c: char| !c.is_alphanumeric() && !is_silent(c)).unwrap_or(text.len());
    let (here, after) = text.split_at_checked(end).unwrap_or((text, ""));
    here.chars().for_each(|c| fold(c, run));
    after
}

/// Takes a number whose digits are grouped by thousands, `1,250` or `1.912.400`, as one; gives what stands behind it.
fn grouped<'t>(text: &'t str, run: &mut String) -> Option<&'t str> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (mut here, mut after) = text.split_at_checked(digits(text))?;
    let mark = after
        .chars()
        .next()
        .filter(|mark| matches!(mark, ',' | '.' | '\'' | '’' | '\u{a0}' | '\u{2009}' | '\u{202f}'))?;
    if !(1..=3).contains(&here.len()) || here.starts_with('0') {
        return None;
    }
    run.push_str(here);
    let mut groups = 0;
    while let Some(next) = after.strip_prefix(mark)
        && let Some(three) = next.split_at_checked(digits(next)).filter(|(three, _)| three.len() == 3)
        && !three.1.starts_with(char::is_alphanumeric)
    {
        (here, after) = three;
        run.push_str(here);
        groups += 1;
    }
    (groups > 0).then_some(after)
}

/// The letters and the digits of a run, apart. A run that changes between them often is a code, and stays whole; an
/// English ordinal is its number.
fn parts_of(run: &str) -> impl Iterator<Item = &str> {
    const MOST_CHANGES: usize = 2;
    let kind = u8::is_ascii_digit;
    let changes = run.as_bytes().windows(2).filter(|two| kind(&two[0]) != kind(&two[1])).count();
    let mut rest = if changes > MOST_CHANGES { "" } else { run };
    let whole = (changes > MOST_CHANGES).then_some(run);
    if changes == 1 && run.starts_with(|c: char| c.is_ascii_digit()) {
        rest = ["st", "nd", "rd", "th"].iter().find_map(|end| rest.strip_suffix(end)).unwrap_or(rest);
    }
    whole.into_iter().chain(std::iter::from_fn(move || {
        let first = rest.bytes().next()?;
        let end = rest.bytes().position(|byte| kind(&byte) != kind(&first)).unwrap_or(rest.len());
        // Between an ASCII digit and anything else a character ends.
        let (part, after) = rest.split_at_checked(end)?;
        rest = after;
        Some(part)
    }))
}

/// What stands behind the single letter after an apostrophe (`clerk's`, `didn't`), which is no word.
fn without_possessive(text: &str) -> &str {
    let letter = text.strip_prefix(['\'', '’']).and_then(|after| after.strip_prefix(|c: char| c.is_ascii_alphabetic()));
    letter.filter(|after| !after.starts_with(char::is_alphanumeric)).unwrap_or(text)
}

/// Whether a character stands within a word and is no letter of its own: a mark on the letter before it, or a place where
/// the word may be broken.
fn is_silent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{ad}')
}

/// Lower case, and the letters that English and German texts write with and without marks.
fn fold(c: char, into: &mut String) {
    for lower in c.to_lowercase() {
        match lower {
            'à'..='å' | 'ā' | 'ă' | 'ą' => into.push('a'),
            'ç' | 'ć' | 'č' => into.push('c'),
            'è'..='ë' | 'ē' | 'ę' | 'ě' => into.push('e'),
            'ì'..='ï' | 'ī' | 'ı' => into.push('i'),
            'ñ' | 'ń' | 'ň' => into.push('n'),
            'ò'..='ö' | 'ø' | 'ō' | 'ő' => into.push('o'),
            'ù'..='ü' | 'ū' | 'ů' | 'ű' => into.push('u'),
            'ý' | 'ÿ' => into.push('y'),
            'ś' | 'š' | 'ş' => into.push('s'),
            'ź' | 'ż' | 'ž' => into.push('z'),
            'ł' => into.push('l'),
            'ß' => into.push_str("ss"),
            'æ' => into.push_str("ae"),
            'œ' => into.push_str("oe"),
            silent if is_silent(silent) => {}
            other => into.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_words(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        words(text, |word| found.push(word.to_owned()));
        found
    }

    fn all_units(text: &str) -> Vec<&str> {
        units(text).into_iter().map(|range| text[range].trim()).collect()
    }

    #[test]
    fn identifiers_are_terms_whole_and_in_parts() {
        assert_eq!(all_words("Permit SN-0100031, no."), ["permit", "sn", "0100031", "sn-0100031", "no"]);
        assert_eq!(all_words("the well-known case"), ["the", "well", "known", "case"], "no digit, no identifier");
        assert_eq!(all_words("3 O 12/24"), ["3", "o", "12", "24", "12-24"]);
    }

    #[test]
    fn an_identifier_is_the_same_however_it_is_joined() {
        let whole = ["sn", "0100031", "sn-0100031"];
        for spelling in ["SN-0100031", "sn0100031", "SN_0100031", "SN/0100031", "SN\u{2013}0100031"] {
            assert_eq!(all_words(spelling), whole, "{spelling}");
        }
        assert_eq!(all_words("7U655/22"), ["7", "u", "655", "22", "7-u-655-22"]);
        assert_eq!(all_words("a3f9c2e1"), ["a3f9c2e1"], "a code that mixes letters and digits stays whole");
        assert_eq!(all_words("24th"), ["24"], "an ordinal is its number");
    }

    #[test]
    fn thousands_are_grouped_in_any_way_and_other_numbers_are_not() {
        for spelling in ["1912400", "1,912,400", "1.912.400", "1'912'400", "1\u{202f}912\u{202f}400"] {
            assert_eq!(all_words(spelling), ["1912400"], "{spelling}");
        }
        assert_eq!(all_words("1,260.00"), ["1260", "00", "1260-00"]);
        assert_eq!(all_words("3.5.2009"), ["3", "5", "2009", "3-5-2009"]);
        assert_eq!(all_words("0.350"), ["0", "350", "0-350"]);
        assert_eq!(all_words("12,5000"), ["12", "5000"]);
        assert_eq!(all_words("1,250,75"), ["1250", "75"]);
    }

    #[test]
    fn a_single_letter_behind_an_apostrophe_is_no_word() {
        assert_eq!(all_words("the clerk's, didn\u{2019}t O'Neill"), ["the", "clerk", "didn", "o", "neill"]);
    }

    #[test]
    fn umlauts_may_be_written_with_an_e() {
        let mut analyzer = Analyzer::default();
        let mut stem = |text: &str| {
            let mut found = String::new();
            analyzer.terms(text, |term| found = term.to_owned());
            found
        };
        for (one, other) in [("Goerlitz", "Görlitz"), ("Kuendigung", "Kündigung"), ("Vertraege", "Verträge")] {
            assert_eq!(stem(one), stem(other));
        }
        for (one, other) in [("neue", "nu"), ("Quelle", "Qulle"), ("toe", "to"), ("issued", "issud")] {
            assert_ne!(stem(one), stem(other));
        }
    }

    #[test]
    fn case_and_accents_fold() {
        assert_eq!(all_words("Görlitz STRASSE Straße é"), ["gorlitz", "strasse", "strasse", "e"]);
        let parted = "Go\u{308}rlitz E\u{301}\u{323}-1 Ver\u{ad}trag \u{301}x \u{ad}";
        assert_eq!(all_words(parted), ["gorlitz", "e", "1", "e-1", "vertrag", "x"]);
    }

    #[test]
    fn forms_of_a_word_are_one_term_and_identifiers_stay() {
        let mut analyzer = Analyzer::default();
        let mut stems = |text: &str| {
            let mut found = Vec::new();
            analyzer.terms(text, |term| found.push(term.to_owned()));
            found
        };
        for (one, other) in
            [("permit", "permits"), ("inspection", "Inspections"), ("Vertrag", "Verträge"), ("Gericht", "gerichtes")]
        {
            assert_eq!(stems(one), stems(other), "{one} and {other}");
        }
        assert_ne!(stems("harbour"), stems("harvest"));
        assert_eq!(stems("SN-0100031s"), ["sn", "0100031", "s", "sn-0100031-s"]);
    }

    #[test]
    fn function_words_are_sorted_and_folded() {
        assert!(FUNCTION_WORDS.is_sorted());
        assert!(FUNCTION_WORDS.iter().all(|word| all_words(word) == [*word]));
        assert!(is_function_word("der") && is_function_word("which") && !is_function_word("crate"));
    }

    #[test]
    fn sentences_end_at_stops_and_not_at_abbreviations_or_dates() {
        assert_eq!(
            all_units("Dr. Falk saw it. She left on 3. Mai with Art. 5 in hand! Why? See Nr. 7. Then go."),
            ["Dr. Falk saw it.", "She left on 3. Mai with Art. 5 in hand!", "Why?", "See Nr. 7.", "Then go."]
        );
    }

    #[test]
    fn a_sentence_ends_behind_a_word_though_a_small_letter_follows() {
        assert_eq!(
            all_units("It was counted in May. the Trust agreed. Costs of 1.9 Mio. Euro, approx. six usw. und so on."),
            ["It was counted in May. the Trust agreed.", "Costs of 1.9 Mio. Euro, approx. six usw. und so on."]
        );
        assert_eq!(all_units("It was counted. the Trust agreed."), ["It was counted.", "the Trust agreed."]);
    }

    #[test]
    fn headings_rows_and_items_are_units_and_wrapped_lines_are_not() {
        let text = "## Page 3\nOne sentence that\nwraps. Another\n\n- item a\n- item b\n| x | y |\nlast";
        assert_eq!(
            all_units(text),
            ["## Page 3", "One sentence that\nwraps.", "Another", "- item a", "- item b", "| x | y |", "last"]
        );
    }

    #[test]
    fn every_byte_that_is_no_blank_lies_in_exactly_one_unit() {
        for text in ["", "\n\n", "a", "a.b. c", "ä. Ö\r\n# h\r\nx. (y.) Z", "1. x\n2) y\n* z", "…?! \u{2028} q"] {
            let mut covered = 0;
            for range in units(text) {
                assert!(text[covered..range.start].trim().is_empty(), "gap in {text:?}");
                covered = range.end;
            }
            assert!(text[covered..].trim().is_empty(), "tail of {text:?}");
        }
    }
}
