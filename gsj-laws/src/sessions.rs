//! Sessions made from choices, with what was sampled in them.

use arbitrary::{Result, Unstructured};
use gsj_trace::json::Value;

use crate::documents::object;
use crate::vocabulary::{END, LETTERS, NEWLINE, SIZE, SPACE, START, THINK, THOUGHT, said};
use gsj_trace::tokens::TokenText;

/// Most records of one session.
const MOST: usize = 12;
/// Longest context; one that would be longer starts anew.
const LONGEST: usize = 200;

/// One model call as the engine had it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) prompt: Vec<u32>,
    pub(crate) sampled: Vec<u32>,
    /// Unless the record does not tell.
    pub(crate) logprobs: Option<Vec<f64>>,
}

/// A session whose records are in the order of their arrival; the completion `c00`, `c01`, .. with metadata `{"n": i}` is call 0, 1, ..
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) session: Value<'static>,
    pub(crate) calls: Vec<Call>,
}

/// An agent's conversation so far.
#[derive(Clone)]
struct Conversation {
    context: Vec<u32>,
    messages: Vec<Value<'static>>,
}

/// Makes a session of the choices that are left; without choices a short one.
pub(crate) fn planned(u: &mut Unstructured<'_>, tokens: &dyn TokenText) -> Result<Planned> {
    let mut agents = vec![opening(u)?];
    let sequenced = u.arbitrary()?;
    let (mut records, mut calls) = (Vec::new(), Vec::new());
    while records.len() < MOST && (!u.is_empty() || records.is_empty()) {
        if rarely(u, 12)? {
            let agent = if rarely(u, 2)? { opening(u)? } else { agents[0].clone() };
            agents.push(agent);
        }
        let at = u.int_in_range(0..=agents.len() - 1)?;
        let agent = &mut agents[at];
        if agent.context.len() > LONGEST {
            *agent = opening(u)?;
        }
        let call = call(u, agent)?;
        let mut record = record(u, records.len(), agent, &call)?;
        if sequenced && let Some(record) = record.as_object_mut() {
            record.insert("sequence", records.len() * 3);
        }
        records.push(record);
        go_on(u, agent, &call, tokens)?;
        calls.push(call);
    }
    let session = object([("session_id", Value::from("s")), ("completions", Value::from(records))]);
    Ok(Planned { session, calls })
}

fn message(role: &'static str, content: impl Into<Value<'static>>) -> Value<'static> {
    object([("role", Value::from(role)), ("content", content.into())])
}

fn opening(u: &mut Unstructured<'_>) -> Result<Conversation> {
    let mut context = vec![START];
    context.extend(letters(u, 4)?);
    if u.ratio(15, 16)? {
        context.extend([END, START]);
    }
    let messages = vec![message("system", "s"), message("user", "u")];
    Ok(Conversation { context: if rarely(u, 32)? { Vec::new() } else { context }, messages })
}

/// Once in so many times; never when no choices are left.
fn rarely(u: &mut Unstructured<'_>, times: u8) -> Result<bool> {
    Ok(!u.ratio(times - 1, times)?)
}

fn letters(u: &mut Unstructured<'_>, most: usize) -> Result<Vec<u32>> {
    let length = u.int_in_range(0..=most)?;
    let letter = |_| {
        let last = if rarely(u, 8)? { SIZE } else { LETTERS * 2 - 1 };
        u.int_in_range(0..=last)
    };
    (0..length).map(letter).collect()
}

fn call(u: &mut Unstructured<'_>, agent: &Conversation) -> Result<Call> {
    let mut sampled = Vec::new();
    if rarely(u, 4)? {
        sampled.push(THINK);
        sampled.extend(letters(u, 3)?);
        sampled.extend([THOUGHT, NEWLINE]);
    }
    sampled.extend(letters(u, 6)?);
    if rarely(u, 12)? {
        let at = u.int_in_range(0..=sampled.len())?;
        sampled.insert(at, END);
    }
    if u.ratio(7, 8)? {
        sampled.push(END);
    }
    let logprobs = sampled.iter().enumerate().map(|(i, id)| -f64::from(*id) / 8.0 - i as f64 / 64.0).collect();
    Ok(Call { prompt: agent.context.clone(), sampled, logprobs: Some(logprobs) })
}

/// The record of a call, in one of the forms that engines have.
fn record(u: &mut Unstructured<'_>, n: usize, agent: &Conversation, call: &Call) -> Result<Value<'static>> {
    let logprobs = call.logprobs.as_deref().unwrap_or_default();
    let pairs = || call.sampled.iter().zip(logprobs);
    let mut choice = vec![("message", message("assistant", "a"))];
    let finish = *u.choose(&["stop", "stop", "stop", "tool_calls", "length", "abort"])?;
    choice.push(("finish_reason", Value::from(finish)));
    let with_ids = u.arbitrary()?;
    match u.int_in_range(0..=2)? {
        0 => {
            let entries: Vec<Value<'static>> = pairs()
                .map(|(id, logprob)| object([("token_id", Value::from(*id)), ("logprob", Value::from(*logprob))]))
                .collect();
            choice.push(("logprobs", object([("content", Value::from(entries))])));
        }
        form => {
            let entries: Vec<Value<'static>> = pairs()
                .map(|(id, logprob)| {
                    if form == 1 {
                        Value::from(vec![Value::from(*logprob), Value::from(*id), Value::Null])
                    } else {
                        object([("token_id", Value::from(*id)), ("token_logprob", Value::from(*logprob))])
                    }
                })
                .collect();
            choice.push(("meta_info", object([("output_token_logprobs", Value::from(entries))])));
        }
    }
    if with_ids {
        choice.push(("token_ids", Value::from(call.sampled.clone())));
    }
    let place = *u.choose(&["input_token_ids", "prompt_token_ids"])?;
    choice.push((place, Value::from(call.prompt.clone())));
    let mut response = vec![("choices", Value::from(vec![members(choice)]))];
    if rarely(u, 4)? {
        let said = call.sampled.len() + usize::from(rarely(u, 8)?);
        response.push(("usage", object([("completion_tokens", Value::from(said))])));
    }
    let request = object([
        ("messages", Value::from(agent.messages.clone())),
        ("tools", Value::from(vec![object([("type", Value::from("function"))])])),
        ("stream", Value::from(true)),
    ]);
    let mut record = vec![
        ("completion_id", Value::from(format!("c{n:02}"))),
        ("request", request),
        ("response", members(response)),
        ("metadata", object([("n", Value::from(n))])),
    ];
    if rarely(u, 24)? {
        record.push(("extra", object([("__truncated", Value::from(true))])));
    }
    Ok(members(record))
}

fn members(members: Vec<(&'static str, Value<'static>)>) -> Value<'static> {
    Value::from(members.into_iter().collect::<gsj_trace::json::Object<'static>>())
}

/// What the agent asks next.
fn go_on(u: &mut Unstructured<'_>, agent: &mut Conversation, call: &Call, tokens: &dyn TokenText) -> Result<()> {
    if rarely(u, 10)? {
        return Ok(()); // asks the same again
    }
    let before = agent.context.len();
    let mut history = call.sampled.clone();
    match u.int_in_range(0..=15)? {
        0 => spell_otherwise(u, &mut history)?,
        1 => strip_reasoning(&mut history),
        2 => replace(u, &mut history)?,
        3 => history.clear(),
        4 => history = letters(u, 4)?,
        5 => history.push(*u.choose(&[SPACE, NEWLINE])?),
        6 => spell_otherwise(u, &mut agent.context)?,
        7 => strip_reasoning(&mut agent.context),
        8 => replace(u, &mut agent.context)?,
        9 => {
            let at = u.int_in_range(0..=before)?;
            agent.context.truncate(at);
        }
        _ => {}
    }
    agent.context.extend(&history);
    if history.last() != Some(&END) && u.ratio(3, 4)? {
        agent.context.push(END);
    }
    let result = letters(u, 4)?;
    agent.context.extend(&result);
    if u.ratio(7, 8)? {
        agent.context.extend([END, START]);
    }
    let reply = if u.ratio(7, 8)? { "a" } else { "b" };
    agent.messages.push(message("assistant", reply));
    let text = String::from_utf8_lossy(&said(tokens, &result)).into_owned();
    agent.messages.push(message("tool", text));
    if rarely(u, 16)? {
        agent.messages.truncate(2);
    }
    Ok(())
}

/// A pair becomes its two letters, or two letters their pair.
fn spell_otherwise(u: &mut Unstructured<'_>, ids: &mut Vec<u32>) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let at = u.int_in_range(0..=ids.len() - 1)?;
    let id = ids[at];
    if (LETTERS..LETTERS * 2).contains(&id) {
        let letter = id - LETTERS;
        ids.splice(at..=at, [letter, (letter + 1) % LETTERS]);
    } else if id < LETTERS && ids.get(at + 1) == Some(&((id + 1) % LETTERS)) {
        ids.splice(at..=at + 1, [id + LETTERS]);
    }
    Ok(())
}

fn strip_reasoning(ids: &mut Vec<u32>) {
    let open = ids.iter().position(|id| *id == THINK);
    let close = ids.iter().position(|id| *id == THOUGHT);
    if let (Some(open), Some(close)) = (open, close)
        && open < close
    {
        ids.drain(open..=close);
    }
}

fn replace(u: &mut Unstructured<'_>, ids: &mut [u32]) -> Result<()> {
    if !ids.is_empty() {
        let at = u.int_in_range(0..=ids.len() - 1)?;
        ids[at] = u.int_in_range(0..=SIZE)?;
    }
    Ok(())
}
