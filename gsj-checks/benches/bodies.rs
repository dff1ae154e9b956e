//! Reading and judging recorded session results: `cargo xtask bench` prints the figures beside the reference's.
#![expect(clippy::print_stderr, reason = "criterion's macros; a missing folder is said")]

#[path = "../../gsj-trace/benches/cpu_time.rs"]
mod cpu_time;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cpu_time::CpuTime;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gsj_checks::{Pins, Policy, Profile, validate_many, validate_parsed};
use gsj_trace::json::{Value, ValueRef};

/// A name, the file, and the pins that it belongs to.
const BODIES: [(&str, &str, &str); 7] = [
    ("fidelity", "fidelity_callback_session_result", "gsj"),
    ("fidelity-stamped", "fidelity_stamped", "gsj"),
    ("h200-fidelity", "h200-fidelity_callback_session_result", "gsj"),
    ("h200-stitch-attempt4", "h200-stitch_attempt4.quarantined", "gsj"),
    ("thinking-on-off", "thinking-on_episode-off.accepted", "gsj"),
    ("thinking-on-on", "thinking-on_episode-on.accepted", "thinking-on"),
    ("pi", "pi_callback_session_result", "gsj"),
];
const ARCHIVE: usize = 1_000;

struct Body {
    name: &'static str,
    bytes: Vec<u8>,
    pins: Pins,
}

fn bodies() -> Vec<Body> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/checks");
    let read = |path: &Path| std::fs::read(path).inspect_err(|error| eprintln!("SKIPPED: {}: {error}", path.display()));
    let body = |(name, file, pins): (&'static str, &str, &str)| {
        let bytes = read(&folder.join(format!("real/{file}.json"))).ok()?;
        Some(Body { name, bytes, pins: Pins::read(&folder.join(format!("pins/{pins}.json"))) })
    };
    BODIES.into_iter().filter_map(body).collect()
}

/// The body itself, where a quarantine's wrapper is around it.
fn unwrapped<'v>(value: &'v Value<'_>) -> ValueRef<'v> {
    value.get("session_result").unwrap_or(value.as_ref())
}

fn single(criterion: &mut Criterion<CpuTime>) {
    let mut group = criterion.benchmark_group("body");
    for Body { name, bytes, pins } in &bodies() {
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(BenchmarkId::new("read", name), |bencher| {
            bencher.iter(|| Value::parse(black_box(bytes)));
        });
        let value = Value::parse(bytes).expect("a recorded body is JSON");
        for profile in [Profile::Reference, Profile::Strict] {
            let policy = Policy::of(profile);
            let judge = |value: &Value<'_>| validate_parsed(unwrapped(value), pins, &policy);
            group.bench_function(BenchmarkId::new(format!("judge_{profile}"), name), |bencher| {
                bencher.iter(|| judge(black_box(&value)));
            });
            group.bench_function(BenchmarkId::new(format!("both_{profile}"), name), |bencher| {
                bencher.iter(|| Value::parse(black_box(bytes)).map(|value| judge(&value)));
            });
        }
    }
    group.finish();
}

fn archive(criterion: &mut Criterion) {
    let bodies = bodies();
    let Some(first) = bodies.first() else { return };
    let archive: Vec<&[u8]> = bodies.iter().cycle().map(|body| &*body.bytes).take(ARCHIVE).collect();
    let policy = Policy::of(Profile::Reference);
    let mut group = criterion.benchmark_group("archive");
    group.throughput(Throughput::Bytes(archive.iter().map(|body| body.len() as u64).sum()));
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        group.bench_function(BenchmarkId::new("threads", threads), |bencher| {
            bencher.iter(|| {
                pool.install(|| {
                    validate_many(archive.iter().copied(), &first.pins, &policy).filter(Result::is_ok).count()
                })
            });
        });
    }
    group.finish();
}

fn configuration<M: criterion::measurement::Measurement>(measurement: M) -> Criterion<M> {
    Criterion::default()
        .with_measurement(measurement)
        .sample_size(30)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .without_plots()
}

criterion_group! { name = each; config = configuration(CpuTime); targets = single }
criterion_group! {
    name = many;
    config = configuration(criterion::measurement::WallTime).sample_size(10);
    targets = archive
}
criterion_main!(each, many);
