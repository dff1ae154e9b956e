//! The sandbox's init as a program of its own, for users of this crate without the `gsj` binary, and for its tests.

fn main() {
    gsj_sandbox::init_main()
}
