//! Where the things of a spec really are: its ports and its paths, filled into what the command is told.

use std::path::{Path, PathBuf};

use crate::error::SandboxError;

/// The ports in force, and for a backend without a file system of its own the host's path for each path inside.
#[derive(Debug, Default)]
pub(crate) struct Places {
    ports: Vec<u16>,
    paths: Vec<(PathBuf, PathBuf)>,
}

impl Places {
    pub(crate) fn new(ports: Vec<u16>, paths: Vec<(PathBuf, PathBuf)>) -> Self {
        Self { ports, paths }
    }

    /// Returns the real path: that of the longest known beginning, or the same path.
    pub(crate) fn path(&self, inside: &Path) -> PathBuf {
        self.paths
            .iter()
            .filter(|(target, _)| inside.starts_with(target))
            .max_by_key(|(target, _)| target.components().count())
            .and_then(|(target, real)| Some((real, inside.strip_prefix(target).ok()?)))
            .map_or_else(
                || inside.to_path_buf(),
                // Joining an empty rest would put a slash behind the name of a file.
                |(real, rest)| if rest.as_os_str().is_empty() { real.clone() } else { real.join(rest) },
            )
    }

    /// Fills in `{port:N}` and `{path:/..}`. Other braces are left alone; a port that the spec does not have is an error.
    pub(crate) fn fill(&self, text: &str) -> Result<String, SandboxError> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            filled.push_str(&rest[..open]);
            rest = &rest[open..];
            let known = rest.find('}').map(|close| (&rest[1..close], close));
            let value = match known {
                Some((inner, _)) => self.value(inner)?,
                None => None,
            };
            if let (Some(value), Some((_, close))) = (value, known) {
                filled.push_str(&value);
                rest = &rest[close + 1..];
            } else {
                filled.push('{');
                rest = &rest[1..];
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Fills in text; what is no text is passed on.
    pub(crate) fn fill_bytes(&self, bytes: &[u8]) -> Result<Vec<u8>, SandboxError> {
        std::str::from_utf8(bytes).map_or_else(|_| Ok(bytes.to_vec()), |text| self.fill(text).map(String::into_bytes))
    }

    fn value(&self, inner: &str) -> Result<Option<String>, SandboxError> {
        if let Some(number) = inner.strip_prefix("port:").and_then(|number| number.parse::<usize>().ok()) {
            let port = self.ports.get(number).ok_or_else(|| {
                SandboxError::invalid(format!("`{{port:{number}}}` is used, but there are {} ports", self.ports.len()))
            })?;
            return Ok(Some(port.to_string()));
        }
        let path = inner.strip_prefix("path:").filter(|path| path.starts_with('/'));
        Ok(path.map(|path| self.path(Path::new(path)).to_string_lossy().into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        let paths = [("/home/agent", "/scratch/home"), ("/home/agent/pi", "/state/pi")];
        Places::new(vec![8080, 8790], paths.map(|(inside, real)| (inside.into(), real.into())).to_vec())
    }

    #[test]
    fn ports_and_paths_are_filled_in_and_other_braces_kept() {
        let text = r#"{"url":"http://127.0.0.1:{port:1}/v1","home":"{path:/home/agent/x}","n":{}} {port:"#;
        assert_eq!(
            places().fill(text).expect("both are known"),
            r#"{"url":"http://127.0.0.1:8790/v1","home":"/scratch/home/x","n":{}} {port:"#
        );
    }

    #[test]
    fn the_longest_mount_wins_and_unknown_paths_stay() {
        assert_eq!(places().path(Path::new("/home/agent/pi/models.json")), Path::new("/state/pi/models.json"));
        assert_eq!(places().path(Path::new("/home/agents")), Path::new("/home/agents"));
    }

    #[test]
    fn a_port_that_does_not_exist_is_refused() {
        let error = places().fill("{port:2}").expect_err("there are two ports, 0 and 1");
        assert_eq!(error.to_string(), "sandbox spec: `{port:2}` is used, but there are 2 ports");
    }
}
