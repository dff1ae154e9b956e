//! What a request names against what this server has: aliases, substitutions, warnings.

use serde_json::Value;

use super::{Rules, Substitution, walk::Fields};
use crate::config::SandboxBackendName;

/// Our builder, and the name that the reference's requests give theirs.
const BUILDER: &str = "prefix_merging";
const BUILDER_IMPORT_PATH: &str = "gsj_rollout.builder:ValidatingPrefixMergingBuilder";

/// What is told to the submitter and stated in the result.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) warnings: Vec<String>,
    pub(super) substituted: Vec<Substitution>,
}

impl Notes {
    pub(super) fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }

    fn substitute(&mut self, field: &str, asked: &str, used: &str) {
        let (field, asked, used) = (field.to_owned(), asked.to_owned(), used.to_owned());
        self.substituted.push(Substitution { field, asked, used });
    }

    /// Something only the server's configuration decides.
    fn decided(&mut self, field: &str, asked: &str, used: &str) {
        if asked != used {
            self.warn(format!("{field}: decided by the server's configuration, the request's value is ignored"));
            self.substitute(field, asked, used);
        }
    }
}

/// Which agent runs: by its name, or by a name that its manifest calls an alias, such as the import
/// path of the reference's pi harness.
pub(super) fn harness(rules: &Rules<'_>, agent: &Fields<'_>, notes: &mut Notes) -> Option<String> {
    let (harness, import_path) = (agent.string("harness"), agent.string("import_path"));
    let (field, asked) = match (harness, import_path) {
        (Some(name), _) => ("harness", name),
        (None, Some(name)) => ("import_path", name),
        // A mistyped one was noted when it was read.
        (None, None) if agent.given("harness").is_some() || agent.given("import_path").is_some() => return None,
        (None, None) => ("harness", rules.config.harness.agent.as_str()),
    };
    match (rules.agent)(asked) {
        Ok(used) => {
            if used != asked {
                notes.substitute(&format!("agent.{field}"), asked, &used);
            }
            Some(used)
        }
        Err(reason) => {
            agent.refuse(field, format!("Value error, {reason}"));
            None
        }
    }
}

/// The engine serves one model, whatever the request calls it.
pub(super) fn model(rules: &Rules<'_>, named: &str, notes: &mut Notes) {
    let Some(served) = rules.config.engine.model.as_deref() else { return };
    let bare = named.split_once('/').map_or(named, |(_provider, model)| model);
    if bare != served && named != served {
        notes.decided("agent.model_name", named, served);
    }
}

pub(super) fn strategy(builder: &Fields<'_>, notes: &mut Notes) {
    match builder.string("strategy") {
        None | Some(BUILDER) => {}
        Some(BUILDER_IMPORT_PATH) => notes.substitute("builder.strategy", BUILDER_IMPORT_PATH, BUILDER),
        Some(_) => builder.refuse(
            "strategy",
            format!("Value error, unknown builder: `{BUILDER}` and `{BUILDER_IMPORT_PATH}` are known"),
        ),
    }
}

pub(super) fn runtime(rules: &Rules<'_>, runtime: &Fields<'_>, notes: &mut Notes) {
    runtime.only(&["backend", "image", "network", "env"]);
    let used = match rules.config.sandbox.backend {
        SandboxBackendName::Bwrap => "bwrap",
        SandboxBackendName::None => "none",
    };
    match runtime.string("backend") {
        Some(asked @ ("docker" | "podman" | "bwrap" | "none")) if asked != used => {
            notes.substitute("runtime.backend", asked, used);
        }
        None | Some("docker" | "podman" | "bwrap" | "none") => {}
        Some(_) => runtime.refuse("backend", "Value error, unknown backend: docker, podman, bwrap and none are known"),
    }
    if let Some(asked) = runtime.string("image") {
        let configured = rules.config.runtime.image.as_deref();
        if configured != Some(asked) {
            notes.decided("runtime.image", asked, configured.unwrap_or("no image"));
        }
    }
    if let Some(asked) = runtime.string("network") {
        // A sandbox has no network, so any other wish is one that was not granted.
        if asked != "none" {
            if rules.config.runtime.network.as_deref() != Some(asked) {
                notes.warn("runtime.network: decided by the server's configuration, ignored".to_owned());
            }
            notes.substitute("runtime.network", asked, "none");
        }
    }
    if let Some(env) = runtime.object("env") {
        let members = env.string_members();
        if !members.is_empty() {
            notes.warn("runtime.env: ignored, give the agent its environment in agent.env".to_owned());
        }
    }
}

/// Compares the settings that a request may state and the server decides.
pub(super) fn settings(rules: &Rules<'_>, settings: &Fields<'_>, notes: &mut Notes) {
    let estate = &rules.config.estate;
    let artifacts = rules.config.harness.artifacts_dir.as_ref().map(|path| path.display().to_string());
    let decided: [(&str, Option<&str>); 5] = [
        ("clone_url_for", Some(&estate.clone_url_for)),
        ("mcp_url_base", estate.mcp_url_base.as_deref()),
        ("mcp_token_secret_env", Some(&estate.token_secret_env)),
        ("artifacts_dir", artifacts.as_deref()),
        ("workdir", Some("/workspace")),
    ];
    for (name, used) in decided {
        let Some(asked) = settings.string(name) else { continue };
        // The substitution's text is public, so a URL's user and password stay out of it.
        if used != Some(asked) {
            let field = format!("agent.settings.{name}");
            notes.decided(
                &field,
                &without_credentials(asked),
                &without_credentials(used.unwrap_or("the session's own socket")),
            );
        }
    }
}

/// A URL's text without what stands before an `@` of its authority.
fn without_credentials(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_user, host)| host);
    format!("{scheme}://{host}{path}")
}

/// The substitutions as the trace's metadata carries them.
pub(crate) fn substitutions(substituted: &[Substitution]) -> Value {
    serde_json::to_value(substituted).unwrap_or(Value::Null)
}
