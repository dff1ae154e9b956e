//! A pins document, or the fault that reading it gave.

use std::path::Path;
use std::sync::OnceLock;

use gsj_trace::canonical::bytes_sha256;
use gsj_trace::json::{Object, Value, ValueRef};

use crate::{Approved, Key, PinsError};

const DEFAULT_MODE: &str = "thinking-off";
const UNRESOLVED_MODE: &str = "pins-unresolved";

/// The approved sets of one estate mode (`checks.md` section 5).
///
/// Making one never fails: a fault is held and given to whoever asks for a key, because whether
/// a broken document is noticed at all depends on the trace.
#[derive(Debug, Clone)]
pub struct Pins {
    label: String,
    digest: Option<String>,
    /// A document whose top level is an object with the member `pins`, or why there is none.
    document: Result<Value<'static>, String>,
    /// What checking the document whole gave, once somebody asked.
    whole: OnceLock<Result<(), PinsError>>,
}

impl Pins {
    /// Takes the bytes of a document. `label` names it in errors, usually its path.
    pub fn from_bytes(label: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { label: label.into(), digest: Some(bytes_sha256(&bytes)), document: read(&bytes), whole: OnceLock::new() }
    }

    /// Holds a fault that the caller met while getting the document.
    pub fn from_fault(label: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { label: label.into(), digest: None, document: Err(reason.into()), whole: OnceLock::new() }
    }

    /// Reads a file now; a failure is held.
    pub fn read(path: &Path) -> Self {
        let label = path.display().to_string();
        match std::fs::read(path) {
            Ok(bytes) => Self::from_bytes(label, bytes),
            Err(error) => Self::from_fault(label, error.to_string()),
        }
    }

    /// What names the document in errors.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// SHA-256 of the document's bytes; `None` when there were none.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The whole document, provenance included.
    pub fn document(&self) -> Result<ValueRef<'_>, PinsError> {
        match &self.document {
            Ok(document) => Ok(document.as_ref()),
            Err(reason) => Err(PinsError::Unusable { label: self.label.clone(), reason: reason.clone() }),
        }
    }

    /// Checks that there is a document with an object `pins` at all, whatever it approves.
    pub fn check_usable(&self) -> Result<(), PinsError> {
        self.sets().map(|_| ())
    }

    /// The approved set under a key, at least one entry.
    pub fn approved(&self, key: Key) -> Result<Approved<'_>, PinsError> {
        let fault = |reason: &str| PinsError::key(&self.label, key, reason);
        match self.sets()?.get(key.name()) {
            None => Err(fault("is missing")),
            Some(ValueRef::Array(array)) if array.is_empty() => Err(fault("is an empty list")),
            Some(ValueRef::Array(array)) => Ok(Approved::new(array)),
            Some(_) => Err(fault("is not a list")),
        }
    }

    /// Checks everything that some gate may ask for: every set that is consulted is there, no list is empty (skill
    /// cards excepted: an estate without skills has none), every hash is 64 or 40 lower-case hex digits, tails are
    /// non-empty lists of integers. The sets that no gate asks for, `skill_cards`, `end_of_turn_ids` and `mode` are
    /// checked where they are present. The document is walked once; later calls give the same answer at no cost.
    ///
    /// # Errors
    /// The first fault, in document order.
    pub fn check_whole(&self) -> Result<(), PinsError> {
        self.whole.get_or_init(|| self.examine_whole()).clone()
    }

    /// The object `pins`.
    pub(crate) fn sets(&self) -> Result<&Object<'_>, PinsError> {
        self.document()?.get("pins").and_then(ValueRef::as_object).ok_or_else(|| PinsError::Unusable {
            label: self.label.clone(),
            reason: "its member `pins` is not an object".to_owned(),
        })
    }

    /// The estate's mode, for file names: `thinking-off` when the document states none,
    /// `pins-unresolved` when it cannot be told. Always `[A-Za-z0-9][A-Za-z0-9_-]{0,31}`.
    pub fn mode(&self) -> &str {
        match self.document.as_ref().map(|document| document.get("mode")) {
            Ok(None) => DEFAULT_MODE,
            Ok(Some(mode)) => mode.as_str().filter(|mode| is_mode(mode)).unwrap_or(UNRESOLVED_MODE),
            Err(_) => UNRESOLVED_MODE,
        }
    }
}

pub(crate) fn is_mode(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= 32
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

fn read(bytes: &[u8]) -> Result<Value<'static>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
    if text.starts_with('\u{feff}') {
        return Err("it starts with a byte order mark".to_owned());
    }
    // The reader would take early zero bytes for another encoding; a pins document has only one.
    if bytes.iter().take(4).any(|b| *b == 0) {
        return Err("it is not JSON: it holds zero bytes".to_owned());
    }
    let document = Value::parse(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    match document.get("pins") {
        Some(_) => Ok(document.into_owned()),
        None => Err("it has no member `pins` at its top level".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pins(text: &str) -> Pins {
        Pins::from_bytes("p.json", text.as_bytes().to_vec())
    }

    #[test]
    fn modes() {
        assert_eq!(pins(r#"{"pins":{}}"#).mode(), "thinking-off");
        assert_eq!(pins(r#"{"pins":{},"mode":"thinking-on"}"#).mode(), "thinking-on");
        for odd in [r#""""#, "null", "7", r#""a/b""#, r#""-a""#, r#""aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa""#] {
            assert_eq!(pins(&format!(r#"{{"pins":{{}},"mode":{odd}}}"#)).mode(), "pins-unresolved", "{odd}");
        }
        assert_eq!(Pins::from_fault("x", "gone").mode(), "pins-unresolved");
    }

    #[test]
    fn faults_name_the_file_and_the_key() {
        let says = |pins: &Pins| pins.approved(Key::Settings).expect_err("a fault").to_string();
        assert!(pins(r#"{"pins":[]}"#).check_usable().is_err());
        assert_eq!(pins(r#"{"pins":{}}"#).check_usable(), Ok(()));
        assert!(says(&pins("{")).starts_with("pins `p.json` cannot be used: it is not JSON: "));
        assert!(says(&pins("\u{feff}{}")).contains("byte order mark"));
        assert!(says(&pins("[]")).contains("no member `pins`"));
        assert!(says(&pins(r#"{"pins":[]}"#)).contains("`pins` is not an object"));
        assert!(says(&pins(r#"{"pins":{"settings_hash":"abc"}}"#)).contains("`pins.settings_hash` is not a list"));
        assert!(says(&pins(r#"{"pins":{"settings_hash":[]}}"#)).contains("empty list"));
        assert!(says(&Pins::read(Path::new("/nonexistent/p"))).starts_with("pins `/nonexistent/p` cannot be used"));
        assert!(says(&Pins::read(Path::new("/"))).contains("cannot be used"), "a directory is no document");
    }

    #[test]
    fn a_fault_says_where_a_document_is_named_and_described() {
        let missing = Pins::from_fault("p.json", "it is not there").check_usable().expect_err("a fault").to_string();
        assert_eq!(
            missing,
            "pins `p.json` cannot be used: it is not there; name the estate's pins file with --pins, GSJ_PINS_PATH or \
             checks.pins (`gsj pins derive` makes one; docs/pins.md says what it holds)"
        );
        let key = pins(r#"{"pins":{}}"#).approved(Key::Settings).expect_err("a fault").to_string();
        assert_eq!(
            key,
            "pins `p.json`: `pins.settings_hash` is missing; make the file anew (`gsj pins derive`; docs/pins.md says what \
             it holds) or name another with --pins, GSJ_PINS_PATH or checks.pins"
        );
    }

    #[test]
    fn null_equals_what_has_no_digest() {
        let pins = pins(r#"{"pins":{"settings_hash":[null,"ab"]}}"#);
        let approved = pins.approved(Key::Settings).expect("a set");
        assert!(approved.contains_digest(None));
        assert!(approved.contains_digest(Some("ab")));
        assert!(!approved.contains_digest(Some("AB")), "case matters");
    }

    #[test]
    fn the_digest_is_that_of_the_bytes() {
        assert_eq!(pins("").digest(), Some("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
        assert_eq!(Pins::from_fault("x", "gone").digest(), None);
    }
}
