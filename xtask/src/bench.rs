//! `cargo xtask bench [cutoff] [retrieval] [--all]`: the benchmarks, and what the Python reference took for the same beside them.
//!
//! Writes nothing but what cargo and criterion keep in the build folder, and what the cuts need in the temporary one.
//! `--all` also measures the gateway, which takes a release build of half the workspace, the cuts against git with the
//! scanner's speed, and the retrieval service; `cutoff` and `retrieval` measure those alone.

use std::path::Path;
use std::process::ExitCode;

use crate::tools;

/// A benchmark by group and name, with the reference's CPU milliseconds for the same work, median and fastest.
struct Row {
    what: &'static str,
    path: &'static str,
    reference: Option<(f64, f64)>,
}

const fn row(what: &'static str, path: &'static str, median: f64, fastest: f64) -> Row {
    Row { what, path, reference: Some((median, fastest)) }
}

const fn ours(what: &'static str, path: &'static str) -> Row {
    Row { what, path, reference: None }
}

/// The figures are those of `shared/spec/reference-figures.md`: one thread of CPython 3.12 on two cores of the same kind.
#[expect(clippy::approx_constant, reason = "milliseconds that happen to be 3.14")]
const ROWS: &[Row] = &[
    row("read fidelity", "body/read/fidelity", 2.17, 1.38),
    row("read fidelity, stamped", "body/read/fidelity-stamped", 1.65, 1.44),
    row("read h200-fidelity", "body/read/h200-fidelity", 1.72, 1.50),
    row("read h200-stitch/attempt4", "body/read/h200-stitch-attempt4", 1.70, 1.40),
    row("read thinking-on/episode-off", "body/read/thinking-on-off", 3.44, 3.14),
    row("read thinking-on/episode-on", "body/read/thinking-on-on", 3.39, 3.26),
    row("read pi (indented)", "body/read/pi", 0.37, 0.34),
    row("judge fidelity", "body/judge_reference/fidelity", 2.43, 2.25),
    row("judge fidelity, stamped", "body/judge_reference/fidelity-stamped", 3.87, 2.49),
    row("judge h200-fidelity", "body/judge_reference/h200-fidelity", 2.61, 2.48),
    row("judge h200-stitch/attempt4", "body/judge_reference/h200-stitch-attempt4", 2.27, 2.19),
    row("judge thinking-on/episode-off", "body/judge_reference/thinking-on-off", 6.36, 5.71),
    row("judge thinking-on/episode-on", "body/judge_reference/thinking-on-on", 9.19, 5.75),
    row("judge pi (indented)", "body/judge_reference/pi", 0.23, 0.20),
    row("both, fidelity", "body/both_reference/fidelity", 4.60, 3.63),
    row("both, fidelity, stamped", "body/both_reference/fidelity-stamped", 5.52, 3.93),
    row("both, h200-fidelity", "body/both_reference/h200-fidelity", 4.33, 3.98),
    row("both, h200-stitch/attempt4", "body/both_reference/h200-stitch-attempt4", 3.97, 3.59),
    row("both, thinking-on/episode-off", "body/both_reference/thinking-on-off", 9.80, 8.85),
    row("both, thinking-on/episode-on", "body/both_reference/thinking-on-on", 12.58, 9.01),
    row("both, pi (indented)", "body/both_reference/pi", 0.60, 0.54),
    row("both, strict, fidelity", "body/both_strict/fidelity", 4.60, 3.63),
    row("both, strict, fidelity, stamped", "body/both_strict/fidelity-stamped", 5.52, 3.93),
    row("both, strict, h200-fidelity", "body/both_strict/h200-fidelity", 4.33, 3.98),
    row("both, strict, h200-stitch/attempt4", "body/both_strict/h200-stitch-attempt4", 3.97, 3.59),
    row("both, strict, thinking-on/episode-off", "body/both_strict/thinking-on-off", 9.80, 8.85),
    row("both, strict, thinking-on/episode-on", "body/both_strict/thinking-on-on", 12.58, 9.01),
    row("both, strict, pi (indented)", "body/both_strict/pi", 0.60, 0.54),
    ours("1,000 bodies, 1 thread (wall)", "archive/threads/1"),
    ours("1,000 bodies, 2 threads (wall)", "archive/threads/2"),
    ours("25 turns: read the records", "session/read/25"),
    row("50 turns: read the records", "session/read/50", 113.0, 109.0),
    ours("100 turns: read the records", "session/read/100"),
    ours("25 turns: build, reference", "session/reference/25"),
    row("50 turns: build, reference", "session/reference/50", 335.0, 317.0),
    ours("100 turns: build, reference", "session/reference/100"),
    row("50 turns: build, reference, glue", "session/reference_glue/50", 663.0, 624.0),
    ours("25 turns: build, exact", "session/exact/25"),
    row("50 turns: build, exact", "session/exact/50", 335.0, 317.0),
    ours("100 turns: build, exact", "session/exact/100"),
    ours("25 turns: build, same_text", "session/same_text/25"),
    row("50 turns: build, same_text", "session/same_text/50", 335.0, 317.0),
    ours("100 turns: build, same_text", "session/same_text/100"),
    ours("50 turns: take the last record", "session/push_last/50"),
    ours("100 turns: take the last record", "session/push_last/100"),
    ours("50 turns: finish after taking each", "session/finish/50"),
    ours("100 turns: finish after taking each", "session/finish/100"),
];

pub(crate) fn run(args: &[String]) -> Result<(), ExitCode> {
    if let Some(other) = args.iter().find(|arg| !matches!(&arg[..], "cutoff" | "retrieval" | "--all")) {
        eprintln!("`{other}` is nothing that can be measured: cargo xtask bench [cutoff] [retrieval] [--all]");
        return Err(ExitCode::from(2));
    }
    let asked = |what: &str| args.iter().any(|arg| arg == what);
    if asked("cutoff") || asked("retrieval") {
        if asked("cutoff") {
            cutoff()?;
        }
        return if asked("retrieval") { retrieval() } else { Ok(()) };
    }
    for (package, bench) in [("gsj-checks", "bodies"), ("gsj-trace", "session")] {
        let mut measure = tools::cargo();
        measure.args(["bench", "--package", package, "--bench", bench, "--", "--noplot"]);
        tools::run(measure)?;
    }
    if args.iter().any(|arg| arg == "--all") {
        let mut gateway = tools::cargo();
        gateway.args(["run", "--release", "--package", "gsj-gateway", "--features", "scripted-engine"]);
        gateway.args(["--example", "overhead"]);
        tools::run(gateway)?;
        cutoff()?;
        retrieval()?;
    }
    print(&tools::target_dir().join("criterion"));
    Ok(())
}

/// Cuts against `git clone`, and the scanner, each printing its own figures.
fn cutoff() -> Result<(), ExitCode> {
    for example in ["bench", "scan_speed"] {
        let mut measure = tools::cargo();
        measure.args(["run", "--release", "--package", "gsj-cutoff", "--example", example]);
        tools::run(measure)?;
    }
    Ok(())
}

/// The retrieval service over HTTP, with queries from `gsj-retrieval/benches/queries.txt`, printing its own figures.
fn retrieval() -> Result<(), ExitCode> {
    let mut measure = tools::cargo();
    measure.args(["run", "--release", "--package", "gsj-retrieval", "--example", "load"]);
    tools::run(measure)
}

fn print(folder: &Path) {
    eprintln!(
        "\n| what | ours, ms: median (fastest) | reference, ms: median (fastest) | fastest of it to our median |"
    );
    eprintln!("|---|---|---|---|");
    let mut sums = (0.0, 0.0);
    for Row { what, path, reference } in ROWS {
        let Some((median, fastest)) = measured(&folder.join(path).join("new/sample.json")) else {
            eprintln!("| {what} | not measured | | |");
            continue;
        };
        let (figure, ratio) = match reference {
            Some((median_there, fastest_there)) => {
                if path.starts_with("body/both_reference") {
                    sums = (sums.0 + median, sums.1 + fastest_there);
                }
                (format!("{median_there:.2} ({fastest_there:.2})"), format!("{:.1}", fastest_there / median))
            }
            None => (String::new(), String::new()),
        };
        eprintln!("| {what} | {median:.3} ({fastest:.3}) | {figure} | {ratio} |");
    }
    eprintln!("| all bodies, both | {:.3} | ({:.2}) | {:.1} |", sums.0, sums.1, sums.1 / sums.0);
}

/// Median and fastest sample in milliseconds, from the two lists of numbers that criterion keeps.
fn measured(path: &Path) -> Option<(f64, f64)> {
    let text = std::fs::read_to_string(path).ok()?;
    let list = |name: &str| -> Option<Vec<f64>> {
        let (_, rest) = text.split_once(&format!("\"{name}\":["))?;
        rest.split_once(']')?.0.split(',').map(|number| number.trim().parse().ok()).collect()
    };
    let mut each: Vec<f64> =
        list("times")?.iter().zip(list("iters")?).map(|(time, count)| time / count / 1e6).collect();
    each.sort_by(f64::total_cmp);
    Some((*each.get(each.len() / 2)?, *each.first()?))
}
