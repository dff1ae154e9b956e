//! Whether anything came from after the timestep.

use super::{FindingKind, kind, strict};

pub(super) const KINDS: &[FindingKind] = &[
    FindingKind {
        meaning: "the timestep is nowhere stated",
        why: "Without it no page is early or late, so no leak can be ruled out.",
        action: "The task's metadata must carry `timestep` as an integer (not a text). Correct the task and run it again.",
        ..kind("G5:missing_evidence:timestep", "", "8.8")
    },
    FindingKind {
        meaning: "a search result shows a page after the timestep",
        why: "The agent has read the future: what it answers with is what it should have predicted.",
        action: "Don't train on it, and don't only drop it: find out why the service answered so. Compare the token's \
                 timestep (`gsj token verify`) with the task's, then ask the service itself with `gsj retrieval search \
                 --case C --timestep T`.",
        strict: Some(
            "Results are read instead of searched: `page`, also as a text of digits, and `file` of each hit count, the hit's \
             own text does not. So a page whose prose names a later page file is no finding, and a result that is \
             shadowed by a second call with the same id is one.",
        ),
        defect: Some("D8"),
        ..kind("G5:search_page_gt_timestep", ":{page}>{timestep}", "8.8")
    },
    FindingKind {
        meaning: "a result of the search tool cannot be read",
        why: "It is neither empty, nor hits as the retrieval service writes them, nor the text of a failed call: which pages \
              it shows the model cannot be told.",
        action: "Find the message by its `tool_call_id` (`gsj show`). Something between service and agent rewrites results, \
                 truncates them, or answers in their place; or the text of a failed call speaks of a later page. If an \
                 agent of your own words its errors differently, let it pass on the service's.",
        ..strict("G5:search_result_unreadable", ":{tool_call_id}", Some("D8"))
    },
    FindingKind {
        meaning: "a tool result belongs to no earlier call",
        why: "It may be a search's: a result whose call is unknown is looked at by no other rule.",
        action: "`first` counts the messages of the prompt, then those of the response. See whether the agent or a proxy \
                 renames call ids, drops assistant messages or compacts the history.",
        ..strict("G5:search_result_unresolved", ":first={message}:count={count}", Some("D8"))
    },
    FindingKind {
        meaning: "what the checkout held, or its page census, is not recorded",
        why: "Nobody can say that the agent's files ended at the timestep.",
        action: "`metadata.gsj_workspace` is written from an audit of the checkout before the agent starts. If it is missing \
                 the audit did not run: look at the session's `error` and the server's log at its start.",
        ..kind("G5:missing_evidence:workspace", "[.pages]", "8.9")
    },
    FindingKind {
        meaning: "the checkout is not shallow or has remotes",
        why: "History or a remote can hold later pages: `git log -p` or `git fetch` would show them to the agent.",
        action: "Make checkouts with `gsj cutoff checkout` (the server does). Check one with `gsj cutoff audit DIR`.",
        strict: Some("`remotes` must be the integer 0: false and 0.0, which equal it, are findings too."),
        defect: Some("D11"),
        ..kind("G5:checkout_history_posture", ":shallow={shallow},remotes={remotes}", "8.9")
    },
    FindingKind {
        meaning: "the checkout's pages are not 1 to the last",
        why: "A page is missing or counted twice, so the agent did not see the case as it stood.",
        action: "Check the case's repository with `gsj estate verify`, and the corpus with `gsj estate validate`.",
        ..kind("G5:checkout_pages_not_contiguous", ":{min}-{max}/{count}", "8.9")
    },
    FindingKind {
        meaning: "the checkout is of another timestep's branch",
        why: "The files belong to another moment of the case than the task says.",
        action: "Compare the task's `timestep` with its agent settings: both must name the same one.",
        ..kind("G5:workspace_branch_ne_timestep", ":{branch}!=timestep-{timestep}", "8.9")
    },
    FindingKind {
        meaning: "the checkout's last page is not the timestep",
        why: "Above it, the agent had later pages at hand; below it, it lacked pages that it should have had.",
        action: "Check the branch in the case's repository with `gsj estate verify --only CASE`. Above the timestep this is a \
                 leak: take the case out of service until the branch is right.",
        ..kind("G5:checkout_max_page_ne_timestep", ":{max}!={timestep}", "8.9")
    },
    FindingKind {
        meaning: "text of a later page stands in the trace",
        why: "It leaked by some way, whichever: a tool, the prompt, a file. The answer may have been copied.",
        action: "The last number counts the messages of the prompt, then those of the response; `gsj cutoff scan` shows the \
                 passage. In a tool result the tool leaks; in the prompt, its author quoted a later page; in an answer of \
                 the model look at the messages before it. Only judged where the pages are at hand.",
        ..strict("G8:later_page_text", ":{page}:{message}", None)
    },
];
