//! The tasks of a timestep. Each entry is tested in this order, and its first fault ends it.

use super::{Rule, rule};

const IDS: &str = "Ids name tasks in the bank, in records and on the command line; one that does not follow from what is asked \
                   would come apart from it.";

pub(super) const RULES: &[Rule] = &[
    Rule {
        meaning: "`prompts.yaml` is not UTF-8",
        why: "Prompts are handed to a model as text.",
        hint: "save the file as UTF-8",
        example: "text: caf\\xE9        (Latin-1)\n--\ntext: caf\\xC3\\xA9    (UTF-8)",
        ..rule("prompts.utf8", "2")
    },
    Rule {
        meaning: "`prompts.yaml` is not one YAML document, or has a key twice",
        why: "What two readers read differently would be two tasks of one name. Nests, aliases and lengths have limits, so that \
              no file can fill the memory.",
        hint: "mend the file at the place named: one document, every key once",
        example: "prompts: [\n--\nprompts: []",
        defect: Some("W5"),
        ..rule("prompts.syntax", "5")
    },
    Rule {
        meaning: "`prompts.yaml` is not a mapping with the one key `prompts`, a list",
        why: "A key that is written wrong would otherwise be tasks that silently aren't there.",
        hint: "write prompts: and a list below it; a timestep without tasks has prompts: [] or no file",
        example: "- {id: \"skill:summarize\", source: skill, name: summarize}\n--\nprompts:\n  - {id: \"skill:summarize\", source: \
                  skill, name: summarize}",
        ..rule("prompts.shape", "5")
    },
    Rule {
        meaning: "an entry is not a mapping",
        why: "An entry says what is asked and from where it comes; a bare word says only one of both.",
        hint: "write the entry as a mapping of id, source, and name or text",
        example: "prompts:\n  - summarize\n--\nprompts:\n  - {id: \"skill:summarize\", source: skill, name: summarize}",
        ..rule("prompts.item-mapping", "5")
    },
    Rule {
        meaning: "an entry's `source` is neither `skill` nor `free`",
        why: "The source says where the prompt's text comes from.",
        hint: "set source to skill, with a name, or to free, with a text",
        example: "source: card\n--\nsource: skill",
        ..rule("prompts.source", "5")
    },
    Rule {
        meaning: "an entry has a key that its source does not take, or lacks one that it needs",
        why: "A skill's entry with a text, or a free one with a name, says two things at once.",
        hint: "give a skill's entry id, source and name, a free one id, source and text, and nothing else",
        example: "{id: \"free:parties\", source: free}\n--\n{id: \"free:parties\", source: free, text: \"Name the parties.\"}",
        defect: Some("W6"),
        ..rule("prompts.keys", "5")
    },
    Rule {
        meaning: "an entry's `id` is no string with something in it",
        why: IDS,
        hint: "give id a string, in quotes: skill: or free: and a name",
        example: "id: 7\n--\nid: \"free:7\"",
        ..rule("prompts.id-string", "5")
    },
    Rule {
        meaning: "a skill entry's `name` is no skill name",
        why: "The name is a folder of skills/; one with a path in it would lead elsewhere.",
        hint: "name a folder of skills/: letters, digits, dot, underscore and dash, the first a letter or digit",
        example: "name: \"../summarize\"\n--\nname: summarize",
        ..rule("prompts.skill-name", "5")
    },
    Rule {
        meaning: "a skill entry's `id` is not `skill:` and its name",
        why: IDS,
        hint: "set id to skill: and the name",
        example: "{id: \"skill:sum\", source: skill, name: summarize}\n--\n{id: \"skill:summarize\", source: skill, name: summarize}",
        ..rule("prompts.skill-id", "5")
    },
    Rule {
        meaning: "an entry names a skill that has no card",
        why: "The card's text is the prompt; there would be nothing to ask.",
        hint: "write skills/NAME/SKILL.md, or name a skill that has one",
        example: "skills/summarize/SKILL.md\nname: summarise\n--\nskills/summarize/SKILL.md\nname: summarize",
        ..rule("prompts.skill-unresolved", "5")
    },
    Rule {
        meaning: "a free entry's `text` is no string with something in it, or holds a NUL character",
        why: "The text is what the agent is asked, byte for byte. A bare word that one version of YAML takes for a number or a \
              date would be asked as something else.",
        hint: "give text a string, in quotes where YAML could read it as something else",
        example: "text: 2026-02-30\n--\ntext: \"2026-02-30\"",
        defect: Some("W6, W19"),
        ..rule("prompts.text", "5")
    },
    Rule {
        meaning: "a free entry's `id` is not `free:` and a slug",
        why: IDS,
        hint: "set id to free: and letters, digits, dots, underscores and dashes, the first a letter or digit",
        example: "id: \"free:two words\"\n--\nid: \"free:two-words\"",
        ..rule("prompts.free-id", "5")
    },
    Rule {
        meaning: "an id stands in two entries of one timestep",
        why: "Case, timestep and id name a row of the task bank; one of the two tasks could not be named. At several timesteps \
              the same id is normal.",
        hint: "give one of the two another id, or drop it",
        example: "- {id: \"free:a\", source: free, text: \"Who?\"}\n- {id: \"free:a\", source: free, text: \"When?\"}\n--\n\
                  - {id: \"free:who\", source: free, text: \"Who?\"}\n- {id: \"free:when\", source: free, text: \"When?\"}",
        ..rule("prompts.dup", "3")
    },
];
