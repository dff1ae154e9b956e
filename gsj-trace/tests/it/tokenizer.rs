//! Tokenizers: the fixtures' own, a SentencePiece-like one, and Qwen3's where it is.
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::path::PathBuf;
use std::sync::OnceLock;

use gsj_trace::json::{Value, ValueRef};
use gsj_trace::tokenizer::{MAX_RUN, Tokenizer, TokenizerError};
use gsj_trace::tokens::TokenText as _;
use proptest::prelude::*;

/// The git blob id of Qwen3's `tokenizer.json`.
const QWEN3: &str = "949e1ec83f61520a25c75426edc4a43acc36f29a";

pub(crate) fn fixture() -> &'static Tokenizer {
    static READ: OnceLock<Tokenizer> = OnceLock::new();
    READ.get_or_init(|| {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/tokenizer/tokenizer.json");
        Tokenizer::from_bytes(&std::fs::read(path).expect("the fixture")).expect("a tokenizer")
    })
}

/// Qwen3's tokenizer, or `None` (said loudly) when `GSJ_TEST_QWEN_TOKENIZER` does not name it.
pub(crate) fn qwen3() -> Option<&'static Tokenizer> {
    static READ: OnceLock<Option<Tokenizer>> = OnceLock::new();
    READ.get_or_init(|| {
        let Some(path) = std::env::var_os("GSJ_TEST_QWEN_TOKENIZER").filter(|path| !path.is_empty()) else {
            eprintln!("SKIPPED: GSJ_TEST_QWEN_TOKENIZER names no tokenizer.json; `cargo xtask test --all` fetches it");
            return None;
        };
        let tokenizer = Tokenizer::from_bytes(&std::fs::read(path).expect("the file")).expect("a tokenizer");
        assert_eq!(tokenizer.identity(), QWEN3, "another tokenizer");
        Some(tokenizer)
    })
    .as_ref()
}

fn laws(tokenizer: &Tokenizer, text: &str) {
    let ids = tokenizer.encode(text).expect("encodes");
    assert_eq!(String::from_utf8_lossy(&tokenizer.decode_bytes(&ids)), text, "the ids say the text");
    assert_eq!(tokenizer.decode(&ids), text);
}

/// Texts as they are met: words, numbers, white space, marks of templates, and any character at all.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z]{1,12}",
        "[0-9]{1,5}",
        "[ \t\n\r]{1,6}",
        "[\u{80}-\u{2fff}]{1,4}",
        "\\PC{1,6}",
        any::<char>().prop_map(String::from),
        prop::sample::select(vec![
            "<|im_start|>",
            "<|im_end|>",
            "<think>",
            "</tool_call>",
            "<|im",
            "'s",
            "\u{1f600}",
            "e\u{301}"
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_ids_of_a_text_say_that_text(text in texts()) {
        laws(fixture(), &text);
    }

    #[test]
    fn the_text_of_any_ids_is_their_bytes(ids in prop::collection::vec(0_u32..2400, 0..40)) {
        let tokenizer = fixture();
        let bytes: Vec<u8> = ids.iter().filter_map(|id| tokenizer.bytes(*id)).flatten().copied().collect();
        prop_assert_eq!(tokenizer.decode(&ids), String::from_utf8_lossy(&bytes).into_owned());
    }
}

#[test]
fn special_tokens_are_control_and_added_ones_are_text() {
    let tokenizer = fixture();
    let id = |text: &str| tokenizer.token_to_id(text).expect("a token");
    assert_eq!(tokenizer.encode("<|im_start|>").expect("encodes"), [id("<|im_start|>")]);
    assert!(tokenizer.is_control(id("<|im_end|>")) && tokenizer.is_added(id("<|im_end|>")));
    assert!(!tokenizer.is_control(id("<think>")) && tokenizer.is_added(id("<think>")));
    assert_eq!(tokenizer.bytes(id("<think>")), Some(&b"<think>"[..]));
    assert_eq!(tokenizer.bytes(u32::MAX), None);
    assert_eq!(tokenizer.decode(&[u32::MAX]), "");
    assert_eq!(tokenizer.identity().len(), 40);
}

fn file(decoder: &str, model: &str) -> String {
    format!(
        r#"{{"version": "1.0", "added_tokens": [{{"id": 9, "content": "</s>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}},
        {{"id": 10, "content": "\u2581\u2581", "special": false, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}}],
        "normalizer": {{"type": "Sequence", "normalizers": [{{"type": "Prepend", "prepend": "\u2581"}}, {{"type": "Replace", "pattern": {{"String": " "}}, "content": "\u2581"}}]}},
        "decoder": {decoder}, "model": {model}}}"#
    )
}

/// Llama 2's shape: blanks as U+2581, unknown bytes as `<0x..>`.
fn sentencepiece() -> String {
    let decoder = r#"{"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
        {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}"#;
    let model = r#"{"type": "BPE", "byte_fallback": true, "unk_token": "<unk>", "fuse_unk": true, "dropout": null,
        "vocab": {"<unk>": 0, "\u2581": 1, "h": 2, "i": 3, "\u2581h": 4, "\u2581hi": 5, "<0x0A>": 6, "<0xC3>": 7, "<0xA9>": 8},
        "merges": ["\u2581 h", "\u2581h i"]}"#;
    file(decoder, model)
}

#[test]
fn a_sentencepiece_vocabulary_gives_blanks_and_fallback_bytes() {
    let tokenizer = Tokenizer::from_bytes(sentencepiece().as_bytes()).expect("a tokenizer");
    let ids = tokenizer.encode("hi hi\né").expect("encodes");
    assert_eq!(ids, [5, 5, 6, 7, 8]);
    let bytes: Vec<&[u8]> = ids.iter().filter_map(|id| tokenizer.bytes(*id)).collect();
    assert_eq!(bytes, [&b" hi"[..], b" hi", b"\n", b"\xc3", b"\xa9"]);
    assert_eq!(
        tokenizer.decode(&ids),
        "hi hi\né",
        "the blank before the first word is the tokenizer's, not the text's"
    );
    assert_eq!(tokenizer.decode(&[5, 9]), "hi</s>");
    assert_eq!(tokenizer.bytes(10), Some(&b"  "[..]), "an added run of blanks, as Gemma has them");
}

#[test]
fn what_cannot_be_followed_exactly_is_refused() {
    let refused = |text: &str| Tokenizer::from_bytes(text.as_bytes()).expect_err("refused").to_string();
    let good = sentencepiece();
    assert!(refused("{").starts_with("read tokenizer.json"), "no JSON");
    assert!(refused("{}").starts_with("read tokenizer.json: "), "nothing in it");
    let decoder =
        good.split("\"decoder\"").nth(1).and_then(|rest| rest.split(", \"model\"").next()).expect("a decoder");
    assert!(refused(&good.replace(decoder, ": null")).contains("its decoder null"));
    let bad_decoder =
        good.replace(r#"{"type": "Fuse"}"#, r###"{"type": "WordPiece", "prefix": "##", "cleanup": true}"###);
    assert!(refused(&bad_decoder).contains("WordPiece"), "{}", refused(&bad_decoder));
    assert!(refused(&good.replace(r#""dropout": null"#, r#""dropout": 0.1"#)).contains("random merges"));
    // Inside a decoder the library would panic on these.
    assert!(refused(&good.replace(r#""start": 1"#, r#""start": NaN"#)).contains("no standard JSON"));
    assert!(refused(&good.replace(r#""start": 1"#, r#""start": 1e999"#)).contains("no standard JSON"));
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    assert!(refused(&good.replace(r#""start": 1"#, &format!(r#""start": {deep}"#))).contains("no standard JSON"));
    assert!(refused(&good.replace(r#""start": 1"#, r#""start": "x""#)).starts_with("read tokenizer.json: "));
    assert!(refused(&good.replace("\"h\": 2", "\"h\": 4294967295")).contains("4294967295"));
}

proptest! {
    #[test]
    fn no_file_makes_it_panic(
        at in 0.0..1.0_f64,
        length in 0_usize..40,
        new in prop::sample::select(vec!["", "null", "{}", "[]", "-1", "1e400", "4294967295", "\"x\"", ",", "{", "\"type\": \"Fuse\"", "\u{2581}"]),
        text in texts(),
    ) {
        let mut file = sentencepiece();
        let place = |share: f64| file.char_indices().map(|(at, _)| at).nth((share * file.chars().count() as f64) as usize).unwrap_or(0);
        let start = place(at);
        let end = file[start..].char_indices().map(|(at, _)| start + at).nth(length).unwrap_or(file.len());
        file.replace_range(start..end, new);
        if let Ok(tokenizer) = Tokenizer::from_bytes(file.as_bytes())
            && let Ok(ids) = tokenizer.encode(&text)
        {
            tokenizer.decode(&ids);
        }
    }
}

#[test]
fn a_text_with_an_endless_run_is_refused() {
    let text = format!("a{}", " ".repeat(MAX_RUN + 1));
    let error = fixture().encode(&text).expect_err("refused");
    assert!(matches!(error, TokenizerError::RunTooLong { at: 1, length, .. } if length == MAX_RUN + 1), "{error}");
    laws(fixture(), &format!("a{}b", " ".repeat(MAX_RUN)));
}

#[test]
fn qwen3_follows_the_laws_and_reads_recorded_prompts() {
    let Some(tokenizer) = qwen3() else { return };
    let mut runner = proptest::test_runner::TestRunner::default();
    // Qwen3 normalises to NFC first: texts of ASCII and precomposed letters are in it already.
    let text = prop::collection::vec(prop_oneof!["[ -~\n\t]{0,20}", "[äöüßéñ漢字かな😀]{1,4}"], 0..12);
    runner
        .run(&text.prop_map(|pieces| pieces.concat()), |text| {
            laws(tokenizer, &text);
            Ok(())
        })
        .expect("the law holds");
    assert!(tokenizer.is_control(151_645) && !tokenizer.is_control(151_667), "<|im_end|> is special, <think> is not");
    assert_eq!(tokenizer.bytes(151_667), Some(&b"<think>"[..]));

    let mut seen = 0;
    for (name, body) in real_bodies() {
        let body = Value::parse(&body).expect("json");
        let trace = first_trace(&body);
        let ids = trace.get("prompt_ids").and_then(|ids| ids.as_array()).and_then(|ids| ids.as_u32s()).expect("ids");
        if ids.first() != Some(&151_644) {
            eprintln!("{name}: not Qwen3's ids");
            continue;
        }
        let text = tokenizer.decode(ids);
        for message in trace.get("prompt_messages").and_then(ValueRef::as_array).expect("messages") {
            let content = gsj_trace::rerender::flat(message.get("content"), "\n");
            let content = content.as_str().expect("plain text");
            assert!(content.len() > 100 && text.contains(content), "{name}: a message's text stands in the prompt");
        }
        seen += 1;
    }
    assert!(seen == 0 || seen >= 6, "{seen} bodies of Qwen3");
}

/// The recorded bodies beside the vectors, by name; none, said loudly, when they are not there.
pub(crate) fn real_bodies() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/checks/real");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED: recorded bodies {}", folder.display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    paths.iter().map(|path| (name(path), std::fs::read(path).expect("a body"))).collect()
}

/// The first trace of a body or of a file of the quarantine.
pub(crate) fn first_trace<'b>(body: &'b Value<'_>) -> ValueRef<'b> {
    body.get("session_result").unwrap_or(body.as_ref()).pointer("/trajectory/traces/0").expect("a trace")
}
