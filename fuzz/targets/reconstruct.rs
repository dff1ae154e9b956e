#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gsj_laws::reconstruct(data));
