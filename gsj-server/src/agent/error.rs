use std::io;
use std::path::{Path, PathBuf};

/// Why an agent can't be read, installed, opened or rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// No agent of this name, or alias, is known.
    #[error("no agent is called `{name}`; known are {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are, comma-separated.
        known: String,
    },
    /// The manifest is not what [`super::AgentManifest`] describes.
    #[error("agent manifest `{origin}`: {reason}")]
    Manifest {
        /// Path of the manifest.
        origin: String,
        /// What is wrong, with line and column where the parser knows them.
        reason: String,
    },
    /// A file that the manifest names can't be read.
    #[error("agent manifest `{origin}` names `{file}`, which can't be read from its folder")]
    MissingFile {
        /// Path of the manifest.
        origin: String,
        /// The file as named there.
        file: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Reading or writing below the state folder, or of an agents folder, failed.
    #[error("{doing} `{path}`")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A program of the machine is missing.
    #[error("agent `{agent}` needs {program}, which is not on this machine: run `apt-get install -y {apt}`")]
    MissingProgram {
        /// The agent.
        agent: String,
        /// The paths looked at.
        program: String,
        /// The Debian package that has it.
        apt: String,
    },
    /// `npm` can't be started.
    #[error(
        "install agent `{agent}`: `{npm}` can't be started: run `apt-get install -y npm`, or put a Node.js with npm on PATH"
    )]
    NoNpm {
        /// The agent.
        agent: String,
        /// The program tried.
        npm: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// `npm ci` ran and failed.
    #[error("install agent `{agent}`: npm ci {status}; is the registry reachable (`npm ping`)? it said:\n{said}")]
    Npm {
        /// The agent.
        agent: String,
        /// How it ended.
        status: String,
        /// The end of its error output.
        said: String,
    },
    /// What was installed is not what the manifest states.
    #[error("install agent `{agent}`: {difference}")]
    Version {
        /// The agent.
        agent: String,
        /// What has which version, and which is stated.
        difference: String,
    },
    /// The agent's runtime doesn't start.
    #[error("agent `{agent}`: its runtime `{command}` doesn't run: {reason}")]
    Runtime {
        /// The agent.
        agent: String,
        /// The command tried.
        command: String,
        /// How it failed.
        reason: String,
    },
    /// The agent is not in the state folder.
    #[error("agent `{agent}` is not installed in `{dir}`: run `{}`", install_command(agent, state))]
    NotInstalled {
        /// The agent.
        agent: String,
        /// Where it would be.
        dir: PathBuf,
        /// The state folder that was looked in.
        state: PathBuf,
    },
    /// The installation is not what was installed.
    #[error(
        "agent `{agent}` in `{dir}` is not what was installed: {reason}; delete that folder and run `{}`",
        install_command(agent, state)
    )]
    Damaged {
        /// The agent.
        agent: String,
        /// The folder.
        dir: PathBuf,
        /// The state folder that it is in.
        state: PathBuf,
        /// The first difference.
        reason: String,
    },
    /// A task allows a tool that the agent doesn't have.
    #[error("tools_allowlist: agent `{agent}` has no tool `{tool}`; it has {known}")]
    UnknownTool {
        /// The agent.
        agent: String,
        /// The tool.
        tool: String,
        /// The tools that it has.
        known: String,
    },
    /// A value of the session can't be given to the agent.
    #[error("render agent `{agent}`: {reason}")]
    Render {
        /// The agent.
        agent: String,
        /// What doesn't fit.
        reason: String,
    },
}

/// The command that installs an agent where it was looked for; whoever runs it may have another default folder.
pub(crate) fn install_command(agent: &str, state: &Path) -> String {
    let text = state.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@:=".contains(c);
    let state = if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) };
    format!("gsj agent install {agent} --state {state}")
}

impl AgentError {
    /// What makes an agent usable that a configuration names.
    pub(crate) fn cure(&self) -> String {
        match self {
            Self::Unknown { known, .. } => format!("name one of {known} in `harness.agent`"),
            Self::NotInstalled { agent, state, .. } => format!("run `{}`", install_command(agent, state)),
            Self::Damaged { agent, dir, state, .. } => {
                format!("delete `{}` and run `{}`", dir.display(), install_command(agent, state))
            }
            Self::MissingProgram { apt, .. } => format!("run `apt-get install -y {apt}`"),
            _ => "see the reason below".to_owned(),
        }
    }

    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_the_folder_as_a_shell_reads_it() {
        assert_eq!(install_command("pi", Path::new("/srv/gsj")), "gsj agent install pi --state /srv/gsj");
        assert_eq!(install_command("pi", Path::new("/a b/it's")), r"gsj agent install pi --state '/a b/it'\''s'");
    }
}
