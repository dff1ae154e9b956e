//! Reading the fields of a task request.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    LONGEST_S, MOST_SAMPLES, OWN_KEYS, Rules, TaskRequest, TaskSettings, compare, is_case_name,
    walk::{Detail, Fields, Problems},
};
use crate::{config::Thinking, id::TaskId};

const KNOWN: [&str; 10] = [
    "task_id",
    "instruction",
    "agent",
    "num_samples",
    "timeout_seconds",
    "runtime",
    "builder",
    "evaluator",
    "callback_url",
    "metadata",
];

pub(super) fn read(rules: &Rules<'_>, value: &Value) -> Result<TaskRequest, Vec<Detail>> {
    let problems = Problems::default();
    let read = Fields::body(value, &problems).and_then(|body| fields(rules, &body));
    let details = problems.into_details();
    match read {
        Some(request) if details.is_empty() => Ok(request),
        // Whatever could not be read was noted where it was met.
        _ => Err(details),
    }
}

fn fields(rules: &Rules<'_>, body: &Fields<'_>) -> Option<TaskRequest> {
    let mut notes = compare::Notes::default();
    for name in body.map.keys().filter(|name| !KNOWN.contains(&name.as_str())) {
        notes.warn(format!("{name}: unknown field, ignored"));
    }
    let task = body.require("task_id").and_then(|value| body.as_string("task_id", value)).and_then(|name| {
        let task = TaskId::new(name);
        if task.is_none() {
            body.refuse("task_id", "Value error, must hold 1 to 256 bytes and no control character");
        }
        task
    });
    let instruction = body.require("instruction").and_then(|value| body.as_string("instruction", value));
    let samples =
        body.map.get("num_samples").map_or(Some(1), |value| body.as_integer("num_samples", value, 1, MOST_SAMPLES));
    let timeout = body
        .map
        .get("timeout_seconds")
        .map_or(Some(rules.config.limits.timeout_s), |value| body.as_positive("timeout_seconds", value, LONGEST_S));
    if body.given("evaluator").is_some() {
        body.refuse("evaluator", "Value error, must be null: rewarding is the trainer's");
    }
    if let Some(runtime) = body.object("runtime") {
        compare::runtime(rules, &runtime, &mut notes);
    }
    let (end_of_turn, glue) = builder(rules, body, &mut notes);
    let callback_url = callback(body);
    let metadata = match body.map.get("metadata") {
        None => Some(None),
        Some(value) => body.as_object("metadata", value).map(Some),
    };
    if let Some(Some(metadata)) = &metadata {
        refuse_own_keys(metadata);
    }
    let agent = body.require("agent").and_then(|value| body.as_object("agent", value));
    let agent =
        agent.and_then(|agent| read_agent(rules, &agent, metadata.as_ref().and_then(Option::as_ref), &mut notes));

    let (mut agent, metadata) = (agent?, metadata?);
    let timeout = Duration::try_from_secs_f64(timeout?).ok()?;
    if !agent.states_token_life {
        // The token must not end before the episode does.
        let episode = u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX).saturating_add(60);
        agent.settings.token_ttl_s = agent.settings.token_ttl_s.max(episode);
    }
    let mut metadata: Map<String, Value> = metadata.map(|fields| fields.map.clone()).unwrap_or_default();
    // The validators read both from the metadata of a trace, so both stand there always.
    metadata.entry("case_id").or_insert_with(|| Value::from(agent.settings.case_id.as_str()));
    metadata.entry("timestep").or_insert_with(|| Value::from(agent.settings.timestep));
    Some(TaskRequest {
        task: task?,
        instruction: instruction?.to_owned(),
        samples: usize::try_from(samples?).ok()?,
        timeout,
        harness: agent.harness,
        model: agent.model,
        settings: agent.settings,
        env: agent.env,
        end_of_turn,
        glue,
        callback_url,
        metadata,
        warnings: notes.warnings,
        substituted: notes.substituted,
    })
}

struct Agent {
    harness: String,
    model: Option<String>,
    settings: TaskSettings,
    /// Whether the request itself says how long the retrieval token lives.
    states_token_life: bool,
    env: BTreeMap<String, String>,
}

fn read_agent(
    rules: &Rules<'_>,
    agent: &Fields<'_>,
    metadata: Option<&Fields<'_>>,
    notes: &mut compare::Notes,
) -> Option<Agent> {
    agent.only(&["harness", "import_path", "model_name", "settings", "env"]);
    let harness = compare::harness(rules, agent, notes);
    let model = agent.string("model_name").map(str::to_owned);
    if let Some(model) = &model {
        compare::model(rules, model, notes);
    }
    let env = match agent.map.get("env") {
        None => BTreeMap::new(),
        Some(value) => {
            let fields = agent.as_object("env", value)?;
            let members = fields.string_members();
            for (name, text) in &members {
                if name.is_empty() || name.contains(['=', '\0']) || text.contains('\0') {
                    fields.refuse(name, "Value error, not a name and value of an environment");
                }
            }
            members.into_iter().collect()
        }
    };
    let empty = Map::new();
    let none = Value::Object(empty);
    let settings = agent.as_object("settings", agent.map.get("settings").unwrap_or(&none));
    let states_token_life = settings.as_ref().is_some_and(|settings| settings.given("mcp_token_ttl_s").is_some());
    let settings = settings.and_then(|settings| read_settings(rules, &settings, metadata, notes));
    Some(Agent { harness: harness?, model, settings: settings?, states_token_life, env })
}

fn read_settings(
    rules: &Rules<'_>,
    settings: &Fields<'_>,
    metadata: Option<&Fields<'_>>,
    notes: &mut compare::Notes,
) -> Option<TaskSettings> {
    let harness = &rules.config.harness;
    let most = i64::from(u32::MAX);
    let case_id = one_of_two(settings, metadata, "case_id", |fields| fields.string("case_id").map(str::to_owned));
    if let Some(name) = &case_id
        && !is_case_name(name)
    {
        settings.refuse("case_id", "Value error, must be letters, digits, `_`, `.` and `-`, without `..`");
    }
    let timestep = one_of_two(settings, metadata, "timestep", |fields| fields.integer("timestep", 1, most));
    if let Some(metadata) = metadata {
        for name in ["skill_card_hash", "split"] {
            let _checked = metadata.string(name);
        }
        // No validator accepts another one, and by then the episode has run.
        let known = |source: &str| {
            source == "free" || source.strip_prefix("skill:").is_some_and(|name| !name.trim().is_empty())
        };
        if metadata.string("prompt_source").is_some_and(|source| !known(source)) {
            metadata.refuse("prompt_source", "Value error, must be `free` or `skill:NAME`");
        }
    }
    let tools = settings.strings("tools_allowlist");
    let context_window = settings.integer("context_window", 1, most);
    let max_tokens = settings.integer("max_tokens", 1, most);
    let ttl = settings.integer("mcp_token_ttl_s", 1, most);
    let thinking = settings.string("thinking").map(|word| {
        let found = thinking(word);
        if found.is_none() {
            settings.refuse("thinking", "Value error, must be off, minimal, low, medium, high, xhigh or max");
        }
        found
    });
    compare::settings(rules, settings, notes);
    Some(TaskSettings {
        case_id: case_id?,
        timestep: small(timestep?)?,
        tools: tools.unwrap_or_else(|| harness.tools_allowlist.clone()),
        context_window: context_window.map_or(Some(harness.context_window), small)?,
        max_tokens: max_tokens.map_or(Some(harness.max_tokens), small)?,
        thinking: thinking.map_or(Some(harness.thinking), |word| word)?,
        token_ttl_s: ttl.map_or(Some(rules.config.estate.token_ttl_s), small)?,
    })
}

/// A fact that settings and metadata both may state; when both do, they must agree.
fn one_of_two<T: PartialEq + std::fmt::Debug>(
    settings: &Fields<'_>,
    metadata: Option<&Fields<'_>>,
    name: &str,
    read: impl Fn(&Fields<'_>) -> Option<T>,
) -> Option<T> {
    let elsewhere = metadata.filter(|fields| fields.given(name).is_some());
    let stated = elsewhere.and_then(&read);
    if settings.given(name).is_none() {
        if elsewhere.is_none() {
            settings.require(name);
            if settings.map.contains_key(name) {
                settings.refuse(name, "Value error, must not be null");
            }
        }
        return stated;
    }
    let wanted = read(settings);
    if let (Some(wanted), Some(stated), Some(metadata)) = (&wanted, &stated, metadata)
        && wanted != stated
    {
        metadata.refuse(name, format!("Value error, disagrees with agent.settings.{name}: {stated:?} and {wanted:?}"));
    }
    wanted
}

fn builder(rules: &Rules<'_>, body: &Fields<'_>, notes: &mut compare::Notes) -> (Option<i64>, Vec<i64>) {
    let defaults = &rules.config.builder;
    let mut end_of_turn = defaults.end_of_turn_token_id;
    let mut glue = defaults.generation_prompt_glue_ids.clone();
    if let Some(builder) = body.object("builder") {
        builder.only(&["strategy", "config"]);
        compare::strategy(&builder, notes);
        if let Some(config) = builder.object("config") {
            config.only(&["end_of_turn_token_id", "generation_prompt_glue_ids"]);
            end_of_turn = config.integer("end_of_turn_token_id", 0, i64::from(u32::MAX)).or(end_of_turn);
            glue = config.integers("generation_prompt_glue_ids").unwrap_or(glue);
        }
    }
    (end_of_turn, glue)
}

fn callback(body: &Fields<'_>) -> Option<String> {
    let text = body.string("callback_url")?;
    let usable = reqwest::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if !usable {
        body.refuse("callback_url", "Value error, must be an http:// or https:// URL with a host");
    }
    usable.then(|| text.to_owned())
}

fn refuse_own_keys(metadata: &Fields<'_>) {
    // What begins with `gsj_` is evidence, and evidence is measured here.
    let own = |name: &&String| OWN_KEYS.contains(&name.as_str()) || name.starts_with("gsj_");
    for name in metadata.map.keys().filter(own) {
        metadata.refuse(name, format!("Value error, `{name}` is written by gsj and must not be set"));
    }
}

fn thinking(word: &str) -> Option<Thinking> {
    use Thinking::{High, Low, Max, Medium, Minimal, Off, Xhigh};
    [Off, Minimal, Low, Medium, High, Xhigh, Max].into_iter().find(|level| level.as_str() == word)
}

fn small(number: i64) -> Option<u32> {
    u32::try_from(number).ok()
}
