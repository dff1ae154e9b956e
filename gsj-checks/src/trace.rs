//! One trace as the rules see it.

use std::ops::Range;

use gsj_trace::json::{Array, Int, Object, ValueRef};

use crate::messages::{ToolResult, array_or_empty, object_or_empty, tool_results};
use crate::patterns::timestep_members;

/// A trace object with what several rules need.
pub(crate) struct Trace<'v> {
    object: &'v Object<'v>,
    pub(crate) metadata: &'v Object<'v>,
    pub(crate) tool_results: Vec<ToolResult<'v>>,
    /// The last page that the session may have seen, when anything states it.
    pub(crate) timestep: Option<Int>,
}

impl<'v> Trace<'v> {
    pub(crate) fn new(object: &'v Object<'v>) -> Self {
        let metadata = object_or_empty(object.get("metadata"));
        let tool_results = tool_results(messages(object));
        let timestep = timestep(metadata, &tool_results);
        Self { object, metadata, tool_results, timestep }
    }

    pub(crate) fn get(&self, key: &str) -> Option<ValueRef<'v>> {
        self.object.get(key)
    }

    /// A member as array.
    pub(crate) fn array(&self, key: &str) -> &'v Array<'v> {
        array_or_empty(self.object.get(key))
    }

    /// The offered tools, when there are any.
    pub(crate) fn roster(&self) -> Option<&'v Array<'v>> {
        self.get("tools").and_then(ValueRef::as_array).filter(|tools| !tools.is_empty())
    }

    /// The messages of the prompt, then those of the response, each with its place among all entries of both lists.
    pub(crate) fn placed_messages(&self) -> impl Iterator<Item = (usize, &'v Object<'v>)> {
        entries(self.object).enumerate().filter_map(|(at, entry)| Some((at, entry.as_object()?)))
    }

    /// The messages of the prompt, then those of the response.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &'v Object<'v>> {
        messages(self.object)
    }
}

fn messages<'v>(trace: &'v Object<'v>) -> impl Iterator<Item = &'v Object<'v>> {
    entries(trace).filter_map(ValueRef::as_object)
}

fn entries<'v>(trace: &'v Object<'v>) -> impl Iterator<Item = ValueRef<'v>> {
    let list = |key| array_or_empty(trace.get(key)).iter();
    list("prompt_messages").chain(list("response_messages"))
}

fn timestep(metadata: &Object<'_>, results: &[ToolResult<'_>]) -> Option<Int> {
    let stated = |object: &Object<'_>| object.get("timestep").and_then(ValueRef::as_int).map(|n| n.to_int());
    stated(metadata).or_else(|| stated(object_or_empty(metadata.get("task_metadata")))).or_else(|| {
        results
            .iter()
            .filter(|result| result.is_of("mcp_gsj_case_status"))
            .find_map(|result| timestep_members(&result.text().as_ref().lossy()).next())
    })
}

/// The loss mask: which tokens are trained on.
#[derive(Clone, Copy)]
pub(crate) struct Mask<'v> {
    pub(crate) array: &'v Array<'v>,
    bare: Option<&'v [u32]>,
}

impl<'v> Mask<'v> {
    pub(crate) fn of(trace: &Trace<'v>) -> Self {
        let array = trace.array("loss_mask");
        Self { array, bare: array.as_u32s() }
    }

    /// Whether the entry equals 1; `true` and `1.0` do.
    pub(crate) fn is_trained(self, at: usize) -> bool {
        match self.bare {
            Some(bare) => bare.get(at) == Some(&1),
            None => self.array.get(at).is_some_and(|entry| entry.python_eq(ValueRef::Int(1.into()))),
        }
    }

    pub(crate) fn trained(self) -> usize {
        match self.bare {
            // Counted as `u32`, twice as many at once as `usize` would be.
            Some(bare) => {
                let ones = |part: &[u32]| part.iter().map(|entry| u32::from(*entry == 1)).sum::<u32>() as usize;
                bare.chunks(1 << 16).map(ones).sum()
            }
            None => (0..self.array.len()).filter(|at| self.is_trained(*at)).count(),
        }
    }

    /// The bare numbers, when the entries are integers in `0..2^32`.
    pub(crate) fn bare(self) -> Option<&'v [u32]> {
        self.bare
    }

    /// The maximal runs of trained entries, as half-open ranges.
    pub(crate) fn turns(self) -> Vec<Range<usize>> {
        let mut turns = Vec::new();
        let mut end = 0;
        while let Some(start) = self.next(end, true) {
            end = self.next(start, false).unwrap_or(self.array.len());
            turns.push(start..end);
        }
        turns
    }

    /// The first entry from a place on that is trained, or that is not.
    fn next(self, from: usize, trained: bool) -> Option<usize> {
        let Some(bare) = self.bare else {
            return (from..self.array.len()).find(|at| self.is_trained(*at) == trained);
        };
        let wanted = |entry: &u32| (*entry == 1) == trained;
        let mut at = from;
        // So many at once are compared as vectors.
        while let Some(chunk) = bare[at..].first_chunk::<32>()
            && !chunk.iter().fold(false, |any, entry| any | wanted(entry))
        {
            at += chunk.len();
        }
        bare[at..].iter().position(wanted).map(|more| at + more)
    }
}
