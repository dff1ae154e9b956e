//! The columns of a task bank (`corpus.md` section 10).

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type, TypePtr};

use crate::error::shown;

/// A column's name, and whether it holds numbers; all else is text.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) number: bool,
}

const fn text(name: &'static str) -> Column {
    Column { name, number: false }
}

/// The columns in their order.
pub(crate) const COLUMNS: [Column; 8] = [
    text("case_id"),
    Column { name: "timestep", number: true },
    text("prompt_id"),
    text("split"),
    text("prompt_source"),
    text("prompt_text"),
    text("skill_card_text"),
    text("sandbox_image"),
];

/// Why a schema built of constants is one.
pub(crate) const FIXED: &str = "names and types are constants that a test builds";

/// The schema that a bank is written with: every column may be null.
pub(crate) fn bank() -> TypePtr {
    let fields = COLUMNS
        .iter()
        .map(|column| {
            let physical = if column.number { Physical::INT64 } else { Physical::BYTE_ARRAY };
            let kind = (!column.number).then_some(LogicalType::String);
            let field = Type::primitive_type_builder(column.name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(kind);
            Arc::new(field.build().expect(FIXED))
        })
        .collect();
    Arc::new(Type::group_type_builder("schema").with_fields(fields).build().expect(FIXED))
}

/// How a file's columns differ from a bank's, a sentence each; empty when they do not.
pub(crate) fn differences(schema: &SchemaDescriptor) -> Vec<String> {
    /// So many differences say enough.
    const MOST: usize = 12;
    let names: Vec<&str> = schema.root_schema().get_fields().iter().map(|field| field.name()).collect();
    let mut found = Vec::new();
    for column in &COLUMNS {
        if !names.contains(&column.name) {
            found.push(format!("column {} is missing", column.name));
        }
    }
    for name in &names {
        if !COLUMNS.iter().any(|column| column.name == *name) {
            found.push(format!("column `{}` does not belong there", shown(name)));
        }
    }
    if found.is_empty() && !names.iter().eq(COLUMNS.iter().map(|column| &column.name)) {
        let wanted: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
        found.push(format!("the columns are not in the order {}", wanted.join(", ")));
    }
    for column in schema.columns() {
        // Only a column at the top has a name of one part.
        let Some(wanted) =
            COLUMNS.iter().find(|wanted| column.path().parts().first().is_some_and(|p| p == wanted.name))
        else {
            continue;
        };
        let (is, needed) = (kind(column), if wanted.number { "int64" } else { "string" });
        if is != needed {
            found.push(format!("column {} is {is}, not {needed}", wanted.name));
        } else if !column.self_type().is_optional() {
            found.push(format!("column {} may not be null by its schema, in a bank every column may", wanted.name));
        }
    }
    if found.len() > MOST {
        let more = found.len() - MOST;
        found.truncate(MOST);
        found.push(format!("and {more} more"));
    }
    found
}

/// A column's type in the words of the specification.
fn kind(column: &ColumnDescriptor) -> String {
    if column.max_rep_level() > 0 || column.path().parts().len() != 1 {
        return "a list or a struct".to_owned();
    }
    let logical = column.logical_type_ref();
    let of = |signed: bool, bits: i8| format!("{}int{bits}", if signed { "" } else { "u" });
    match (column.physical_type(), logical, column.converted_type()) {
        (Physical::BYTE_ARRAY, Some(LogicalType::String), _) | (Physical::BYTE_ARRAY, None, ConvertedType::UTF8) => {
            "string".to_owned()
        }
        (Physical::BYTE_ARRAY, None, ConvertedType::NONE) => "binary".to_owned(),
        (Physical::INT32 | Physical::INT64, Some(LogicalType::Integer(int)), _) => of(int.is_signed, int.bit_width),
        (Physical::INT64, None, ConvertedType::NONE | ConvertedType::INT_64) => "int64".to_owned(),
        (Physical::INT32, None, ConvertedType::NONE | ConvertedType::INT_32) => "int32".to_owned(),
        (physical, Some(logical), _) => format!("{physical} {logical:?}"),
        (physical, None, converted) => format!("{physical} {converted}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(message: &str) -> Vec<String> {
        let parsed = parquet::schema::parser::parse_message_type(message).unwrap();
        differences(&SchemaDescriptor::new(Arc::new(parsed)))
    }

    const GOOD: &str = "message schema { optional binary case_id (STRING); optional int64 timestep; \
        optional binary prompt_id (UTF8); optional binary split (STRING); optional binary prompt_source (STRING); \
        optional binary prompt_text (STRING); optional binary skill_card_text (STRING); \
        optional binary sandbox_image (STRING); }";

    #[test]
    fn the_schema_that_is_written_is_a_banks() {
        assert_eq!(differences(&SchemaDescriptor::new(bank())), [""; 0]);
        assert_eq!(of(GOOD), [""; 0], "older files state text in the older way");
    }

    #[test]
    fn each_difference_is_named() {
        let with = |from: &str, to: &str| of(&GOOD.replace(from, to)).join("; ");
        assert_eq!(with("int64 timestep", "int32 timestep"), "column timestep is int32, not int64");
        assert_eq!(
            with("int64 timestep", "int64 timestep (INTEGER(64,false))"),
            "column timestep is uint64, not int64"
        );
        assert_eq!(with("binary split (STRING)", "binary split"), "column split is binary, not string");
        assert_eq!(
            with("optional binary split", "required binary split"),
            "column split may not be null by its schema, in a bank every column may"
        );
        assert_eq!(with("split", "Split"), "column split is missing; column `Split` does not belong there");
        assert_eq!(
            with("optional binary split (STRING);", "optional group split { optional binary a (STRING); }"),
            "column split is a list or a struct, not string"
        );
        assert_eq!(with("optional int64 timestep;", "").replace("missing", "gone"), "column timestep is gone");
        let moved = GOOD.replace("optional int64 timestep;", "").replace("{ ", "{ optional int64 timestep; ");
        assert!(of(&moved).join("").starts_with("the columns are not in the order case_id, timestep,"));
    }
}
