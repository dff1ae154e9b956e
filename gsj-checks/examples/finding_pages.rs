//! Prints the pages of `docs/findings/`, each a name, a NUL, a text and a NUL: `cargo xtask docs` writes them.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

fn main() {
    for page in gsj_checks::finding_pages() {
        print!("{}\0{}\0", page.name, page.text);
    }
}
