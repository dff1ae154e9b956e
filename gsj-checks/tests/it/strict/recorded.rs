//! The recorded bodies under the strict profile. None has a certificate.

use std::fmt::Write as _;
use std::path::PathBuf;

use gsj_checks::{Pins, Policy, validate_parsed};
use gsj_trace::json::Value;

#[test]
fn real_search_results_are_read() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/checks");
    let Ok(entries) = std::fs::read_dir(folder.join("real")) else {
        return eprintln!("SKIPPED: no recorded bodies in {}", folder.display());
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("entry").path()).collect();
    paths.sort();
    let lenient = Policy { require_fidelity: false, ..Policy::default() };
    let mut answers = String::new();
    for path in paths {
        let bytes = std::fs::read(&path).expect("a body");
        let value = Value::parse(&bytes).expect("json");
        let body = value.get("session_result").unwrap_or(value.as_ref());
        let name = path.file_name().expect("a name").to_string_lossy();
        let mode = if name.contains("episode-on") { "thinking-on" } else { "gsj" };
        let pins = Pins::read(&folder.join(format!("pins/{mode}.json")));
        let verdict = validate_parsed(body, &pins, &lenient).expect("real pins are whole");
        writeln!(answers, "{name}").expect("text");
        for finding in verdict.findings {
            assert!(!finding.starts_with("G5:search_result"), "{name}: {finding}");
            writeln!(answers, "  {finding}").expect("text");
        }
    }
    insta::assert_snapshot!(answers, @r"
    fidelity_callback_session_result.json
      G5:missing_evidence:workspace
      G1:missing_evidence:prompt_source
      G7:missing_evidence:settings
    fidelity_stamped.json
    h200-fidelity_callback_session_result.json
    h200-stitch_attempt4.quarantined.json
    pi_callback_session_result.json
      ADM7:missing_evidence:gsj_validation
      G5:missing_evidence:timestep
      G5:missing_evidence:workspace
      G3:tool_roster_hash_not_approved:4bcdfec4b11f6bb7c37e0afda4d9c767191e188194ccb559ee752b7b23eea5b3
      G2:system_prompt_hash_not_approved:d9c3ae73c3d0725c41ce73b80bc853d3f86f36e0b255beafc17bee0852030167
      G1:missing_evidence:prompt_source
      G7:missing_evidence:settings
      G6:prompt_suffix_ne_tail_ids
      G6:interstitial_ne_tail_ids:first=2:count=1
    thinking-on_episode-off.accepted.json
    thinking-on_episode-on.accepted.json
    ");
}
