//! Kept inputs that once failed, and the laws over random choices.

use std::path::Path;

use gsj_laws::LAWS;
use proptest::prelude::*;

/// Every input that a fuzz target once failed on, in the folder of its law.
#[test]
fn what_once_failed_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/regressions");
    for (name, law) in LAWS {
        let mut inputs: Vec<_> = std::fs::read_dir(folder.join(name))
            .into_iter()
            .flatten()
            .map(|entry| entry.expect("an entry of the folder").path())
            .collect();
        inputs.sort();
        for input in inputs {
            let data = std::fs::read(&input).expect("a kept input");
            let kept = std::panic::catch_unwind(|| law(&data));
            assert!(kept.is_ok(), "{} breaks the law `{name}`", input.display());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn sessions_of_any_choices_are_built_lawfully(choices in prop::collection::vec(any::<u8>(), 0..400)) {
        gsj_laws::reconstruct(&[&[0], &choices[..]].concat());
    }

    #[test]
    fn results_of_any_choices_are_judged_lawfully(choices in prop::collection::vec(any::<u8>(), 0..200)) {
        gsj_laws::validators(&[&[1], &choices[..]].concat());
    }

    #[test]
    fn any_text_of_json_is_read_lawfully(text in "([\\[\\]{}:,\"]|\\\\u[dD][89a-f][0-9]{2}|\\\\[nrt\"/]|-?[0-9]{1,3}(\\.[0-9]{1,3})?(e-?[0-9]{1,3})?|null|true|NaN|\"[ -~]{0,5}\"|[ \n]){0,40}") {
        gsj_laws::reader(text.as_bytes());
        gsj_laws::reader(format!("[{text}]").as_bytes());
        gsj_laws::pins(format!("{{\"pins\":{{\"settings_hash\":[{text}]}}}}").as_bytes());
    }
}

/// Otherwise the law that strict leaves nothing out says little.
#[test]
fn some_results_are_clean() {
    let clean =
        (0..200_u8).filter(|n| gsj_laws::is_clean(&[0, 0, *n, n.wrapping_mul(37), n.wrapping_mul(101)])).count();
    assert!(clean > 20, "{clean} of 200 results are clean under the strict profile");
}
