//! Building as the Python reference does (sections 10.2 to 11.5).

use crate::json::{Value, ValueRef};

use super::Options;
use super::chains::{Merged, group, walk};
use super::extract::Completion;
use super::findings;
use super::ids::Ids;
use super::output::{Stats, Trace, Trajectory};
use super::session::{Header, Record, Session};

pub(super) fn build<'v>(
    header: Header<'v>,
    completions: impl Iterator<Item = ValueRef<'v>>,
    options: &Options,
) -> Value<'static> {
    let session = Session::read(header, completions);
    let mut ids = Ids::default();
    let end_of_turn = options.end_of_turn_token_id.map(|id| ids.configured(id));
    let glue: Vec<u32> = options.glue_ids.iter().map(|&id| ids.configured(id)).collect();

    let mut completions: Vec<Completion<'_>> = session.records.iter().map(|r| Completion::read(r, &mut ids)).collect();
    let mut out = Trajectory { record_count: session.records.len(), ..Trajectory::default() };
    out.findings = findings::of_session(&session, &completions, end_of_turn);
    out.stitched = findings::stitch(&mut completions, &glue);
    out.aborted = session.records.iter().any(Record::is_aborted);

    let mut kept: Vec<(&Record<'_>, &Completion<'_>)> = Vec::new();
    for (record, completion) in session.records.iter().zip(&completions) {
        match record.exclusion() {
            Some(reason) => out.filter.excluded.push((record.id.clone().into_owned(), reason)),
            None => kept.push((record, completion)),
        }
    }
    out.filter.kept = kept.len();
    out.findings.extend(out.filter.finding());
    traces(&kept, &ids, end_of_turn, &mut out);
    out.into_value(&session.header)
}

fn traces(kept: &[(&Record<'_>, &Completion<'_>)], ids: &Ids, end_of_turn: Option<u32>, out: &mut Trajectory) {
    let completions: Vec<&Completion<'_>> = kept.iter().map(|(_, completion)| *completion).collect();
    for chain in group(&completions) {
        let members: Vec<&Completion<'_>> = chain.iter().map(|&i| completions[i]).collect();
        let merged = walk(&members, end_of_turn);
        let stats: &mut Stats = &mut out.stats;
        stats.chains += 1;
        stats.merged += merged.count;
        if merged.count == chain.len() {
            stats.full += 1;
        } else {
            stats.truncated += 1;
        }
        let records: Vec<&Record<'_>> = chain[..merged.count].iter().map(|&i| kept[i].0).collect();
        out.traces.extend(trace(&members[..merged.count], &records, merged, ids));
    }
}

fn trace(
    members: &[&Completion<'_>],
    records: &[&Record<'_>],
    merged: Merged<'_>,
    ids: &Ids,
) -> Option<Value<'static>> {
    let (first, last) = (members.first()?, members.last()?);
    let owned = |values: &[ValueRef<'_>]| values.iter().map(|v| (*v).to_owned()).collect();
    let trace = Trace {
        prompt_ids: ids.to_value(&first.prompt),
        response_ids: ids.to_value(&merged.response),
        loss_mask: merged.mask,
        prompt_messages: owned(&first.prompt_messages),
        response_messages: owned(&merged.response_messages),
        tools: owned(&first.tools),
        finish_reason: last.finish_reason.clone(),
        logprobs: merged.logprobs,
        metadata: records.iter().map(|r| r.owned_metadata()).collect(),
        fidelity: None,
    };
    Some(trace.into_value())
}
