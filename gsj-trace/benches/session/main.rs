//! Reading and building sessions: `cargo xtask bench` prints the figures beside the reference's.
#![expect(clippy::print_stderr, reason = "criterion's macros; what is measured is said once")]

#[path = "../cpu_time.rs"]
mod cpu_time;
mod records;

use std::hint::black_box;
use std::time::Duration;

use cpu_time::CpuTime;
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use gsj_trace::engine::{Dialect, normalize_response, normalize_whole};
use gsj_trace::json::Value;
use gsj_trace::reconstruct::{Continuity, Incremental, Options, build};

const TURNS: [usize; 3] = [25, 50, 100];

/// Records whose responses are normalised as the mode wants them.
fn normalised(records: &[Value<'static>], normalise: fn(Dialect, &mut Value<'_>)) -> Vec<Value<'static>> {
    let mut records = records.to_vec();
    for response in records.iter_mut().filter_map(|record| record.get_mut("response")) {
        normalise(Dialect::Vllm, response);
    }
    records
}

fn options(continuity: Continuity, glue: &[u32]) -> Options {
    Options {
        continuity,
        end_of_turn_token_id: Some(i64::from(records::END_OF_TURN)),
        glue_ids: glue.iter().copied().map(i64::from).collect(),
        ..Options::default()
    }
}

fn sessions(criterion: &mut Criterion<CpuTime>) {
    let mut group = criterion.benchmark_group("session");
    for turns in TURNS {
        let records = records::records(turns, false);
        let texts: Vec<String> = records.iter().map(Value::to_json).collect();
        let bytes: usize = texts.iter().map(String::len).sum();
        eprintln!("{turns} turns: {bytes} bytes of JSON");
        group.bench_function(BenchmarkId::new("read", turns), |bencher| {
            bencher.iter(|| {
                for text in &texts {
                    black_box(Value::parse(black_box(text.as_bytes())).is_ok());
                }
            });
        });
        let reference = records::session(normalised(&records, normalize_response));
        let ours = records::session(normalised(&records, normalize_whole));
        for (name, session, continuity) in [
            ("reference", &reference, Continuity::Reference),
            ("exact", &ours, Continuity::Exact),
            ("same_text", &ours, Continuity::SameText),
        ] {
            let options = options(continuity, &[]);
            let built = build(session, &options).expect("an object");
            let merged = built.pointer("/metadata/reconstruction_stats/completions_merged").and_then(|n| n.as_i64());
            assert_eq!(merged, i64::try_from(turns).ok(), "{name}: every completion is merged");
            group.bench_function(BenchmarkId::new(name, turns), |bencher| {
                bencher.iter(|| build(black_box(session), &options));
            });
        }
        let completions = normalised(&records, normalize_whole);
        let header = records::header();
        let merged = |count: usize| {
            let mut session = Incremental::new(options(Continuity::SameText, &[]));
            completions[..count].iter().for_each(|record| session.push(record.as_ref()));
            session
        };
        group.bench_function(BenchmarkId::new("push_last", turns), |bencher| {
            let last = completions[turns - 1].as_ref();
            let push = |mut session: Incremental| {
                session.push(black_box(last));
                session
            };
            bencher.iter_batched(|| merged(turns - 1), push, BatchSize::LargeInput);
        });
        group.bench_function(BenchmarkId::new("finish", turns), |bencher| {
            let finish = |session: Incremental| session.finish(header.as_ref());
            bencher.iter_batched(|| merged(turns), finish, BatchSize::LargeInput);
        });
    }
    let glued = records::session(normalised(&records::records(50, true), normalize_response));
    let options = options(Continuity::Reference, &records::GLUE);
    group.bench_function(BenchmarkId::new("reference_glue", 50), |bencher| {
        bencher.iter(|| build(black_box(&glued), &options));
    });
    group.finish();
}

fn configuration() -> Criterion<CpuTime> {
    Criterion::default()
        .with_measurement(CpuTime)
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .without_plots()
}

criterion_group! { name = benches; config = configuration(); targets = sessions }
criterion_main!(benches);
