use std::collections::BTreeMap;
use std::path::Path;

use super::error::AgentError;
use super::manifest::AgentManifest;
use super::tree::sha256;

/// An agent as it stands in its folder: the manifest and the files that it names.
#[derive(Debug, Clone)]
pub struct Agent {
    manifest: AgentManifest,
    manifest_sha256: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl Agent {
    fn read(
        origin: &str,
        manifest: &[u8],
        mut file: impl FnMut(&str) -> std::io::Result<Vec<u8>>,
    ) -> Result<Self, AgentError> {
        let text = std::str::from_utf8(manifest).map_err(|error| AgentError::Manifest {
            origin: origin.to_owned(),
            reason: format!("is not UTF-8: {error}"),
        })?;
        let parsed = AgentManifest::from_yaml(text, origin)?;
        let npm = parsed.install.npm.iter().flat_map(|npm| [&npm.package, &npm.lock]);
        let files = npm
            .chain(&parsed.install.files)
            .map(|name| match file(name) {
                Ok(bytes) => Ok((name.clone(), bytes)),
                Err(source) => Err(AgentError::MissingFile { origin: origin.to_owned(), file: name.clone(), source }),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { manifest: parsed, manifest_sha256: sha256(manifest), files })
    }

    /// The manifest.
    #[must_use]
    pub fn manifest(&self) -> &AgentManifest {
        &self.manifest
    }

    /// SHA-256 of the manifest's bytes.
    #[must_use]
    pub fn manifest_sha256(&self) -> &str {
        &self.manifest_sha256
    }

    /// SHA-256 of the lock's bytes; of an agent without one, [`Self::files_sha256`].
    #[must_use]
    pub fn lock_sha256(&self) -> String {
        match self.manifest.install.npm.as_ref().and_then(|npm| self.files.get(&npm.lock)) {
            Some(lock) => sha256(lock),
            None => self.files_sha256(),
        }
    }

    /// SHA-256 over names and contents of the agent's own files.
    #[must_use]
    pub fn files_sha256(&self) -> String {
        let listing: String = self.own_files().map(|(name, bytes)| format!("{}  {name}\n", sha256(bytes))).collect();
        sha256(listing.as_bytes())
    }

    /// The files needed at run time, by name.
    pub(super) fn own_files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files
            .iter()
            .filter(|(name, _)| self.manifest.install.files.contains(name))
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    pub(super) fn file(&self, name: &str) -> &[u8] {
        self.files.get(name).map_or(&[], Vec::as_slice)
    }
}

/// The agents there are, by name.
#[derive(Debug, Clone, Default)]
pub struct Agents {
    by_name: BTreeMap<String, Agent>,
}

/// Embeds an agent's folder: each file under the name that its manifest uses.
macro_rules! embedded {
    ($name:literal: $($file:literal),+ $(,)?) => {
        (concat!("agents/", $name, "/agent.yaml"), include_bytes!(concat!("../../../agents/", $name, "/agent.yaml")).as_slice(),
         [$(($file, include_bytes!(concat!("../../../agents/", $name, "/", $file)).as_slice())),+].as_slice())
    };
}

type Embedded = (&'static str, &'static [u8], &'static [(&'static str, &'static [u8])]);

const BUILTIN: &[Embedded] = &[
    embedded!("light": "agent.py"),
    embedded!("pi": "package.json", "package-lock.json", "gsj-mcp.js", "ripgreprc", "bin/fd"),
];

impl Agents {
    /// The agents embedded in the program.
    ///
    /// # Errors
    /// [`AgentError::Manifest`] if an embedded manifest is wrong, which a test rules out.
    pub fn builtin() -> Result<Self, AgentError> {
        let mut agents = Self::default();
        for (origin, manifest, files) in BUILTIN {
            agents.insert(Agent::read(origin, manifest, |name| {
                let found = files.iter().find(|(file, _)| *file == name);
                found.map(|(_, bytes)| bytes.to_vec()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
            })?);
        }
        Ok(agents)
    }

    /// Adds every agent of a folder: each sub-folder with an `agent.yaml`. One with the name of an agent
    /// already here takes its place.
    ///
    /// # Errors
    /// [`AgentError::Io`] where the folder can't be read, [`AgentError::Manifest`] and
    /// [`AgentError::MissingFile`] where an agent is not whole.
    pub fn add_folder(&mut self, folder: &Path) -> Result<(), AgentError> {
        let mut dirs = std::fs::read_dir(folder)
            .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>())
            .map_err(AgentError::io("read agents folder", folder))?;
        dirs.sort();
        for dir in dirs {
            let path = dir.join("agent.yaml");
            if !path.is_file() {
                continue;
            }
            let manifest = std::fs::read(&path).map_err(AgentError::io("read agent manifest", &path))?;
            self.insert(Agent::read(&path.display().to_string(), &manifest, |name| std::fs::read(dir.join(name)))?);
        }
        Ok(())
    }

    fn insert(&mut self, agent: Agent) {
        self.by_name.insert(agent.manifest.name.clone(), agent);
    }

    /// The agent of this name or alias.
    ///
    /// # Errors
    /// [`AgentError::Unknown`], which names those there are.
    pub fn find(&self, name: &str) -> Result<&Agent, AgentError> {
        let by_alias = || self.by_name.values().find(|agent| agent.manifest.answers_to(name));
        self.by_name.get(name).or_else(by_alias).ok_or_else(|| AgentError::Unknown {
            name: name.to_owned(),
            known: self.by_name.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Agent> {
        self.by_name.values()
    }
}
