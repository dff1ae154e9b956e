//! How much memory a verdict takes. A binary of its own: the allocator counts for the whole process.

use std::path::Path;
use std::sync::Mutex;

use gsj_checks::{Pins, Policy, Profile, validate};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// One test at a time: what the other allocates would be counted too.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The most heap that is held at once while a body is judged from its bytes, beyond what was held before.
fn peak(body: &[u8], pins: &Pins, policy: &Policy) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let verdict = validate(body, pins, policy);
    let peak = ALLOCATOR.peak_usage() - before;
    assert!(verdict.is_ok_and(|verdict| verdict.unreadable.is_none()));
    peak
}

#[test]
fn judging_a_recorded_body_takes_less_than_three_times_its_size() {
    let _alone = ONE_AT_A_TIME.lock().expect("the other test passed");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/checks");
    let Ok(bodies) = std::fs::read_dir(folder.join("real")) else {
        return eprintln!("SKIPPED: no recorded bodies in {}", folder.display());
    };
    let mut count = 0;
    for path in bodies.map(|entry| entry.expect("entry").path()) {
        let body = std::fs::read(&path).expect("body");
        for profile in [Profile::Reference, Profile::Strict] {
            for pins in ["gsj", "thinking-on"] {
                let pins = Pins::read(&folder.join(format!("pins/{pins}.json")));
                // The first body also pays for the pins, which stay.
                assert!(validate(b"{}", &pins, &Policy::of(profile)).is_ok());
                let peak = peak(&body, &pins, &Policy::of(profile));
                let size = body.len();
                eprintln!("{}: {size} bytes, {profile}: {peak} on the heap", path.display());
                assert!(size + peak < 3 * size, "with the body itself");
            }
        }
        count += 1;
    }
    assert!(count >= 7, "{count} bodies");
}

/// Arrays as other programs write them: nulls where nothing was sampled, the integers 0 and -1 among floats, negative
/// ids.
#[test]
fn mixed_numbers_are_not_held_one_by_one() {
    let _alone = ONE_AT_A_TIME.lock().expect("the other test passed");
    let pins = Pins::from_fault("pins", "no trace asks for them");
    for element in ["null,-0.5", "0,-0.25", "-1,5", "true,false", "1.0,2"] {
        let array = vec![element; 50_000].join(",");
        let body = format!("{{\"status\":\"COMPLETED\",\"trajectory\":{{\"traces\":[]}},\"numbers\":[{array}]}}");
        let peak = peak(body.as_bytes(), &pins, &Policy::of(Profile::Reference));
        assert!(peak < 9 * 100_000, "{element}: {peak} bytes for 100,000 elements");
    }
}
