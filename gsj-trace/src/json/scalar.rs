//! Anything that is neither text nor container, in eight bytes.

use super::{IntRef, Value, ValueRef};

/// A float, null, a boolean or an integer of up to 48 bits.
///
/// A float is its own bits, and every NaN the same one: JSON has one. That leaves the bit patterns
/// of the other NaNs, told apart by their upper 16 bits.
#[derive(Clone, Copy)]
pub(super) struct Scalar(u64);

const TAG: u64 = 0xffff << 48;
const INT: u64 = 0xfffc << 48;
const NULL: u64 = 0xfffd << 48;
const BOOL: u64 = 0xfffe << 48;

impl Scalar {
    pub(super) const NULL: Self = Self(NULL);

    pub(super) fn float(x: f64) -> Self {
        Self(if x.is_nan() { f64::NAN.to_bits() & !(1 << 63) } else { x.to_bits() })
    }

    pub(super) fn small(n: u32) -> Self {
        Self(INT | u64::from(n))
    }

    pub(super) fn boolean(b: bool) -> Self {
        Self(BOOL | u64::from(b))
    }

    /// Packs a value, if it can be.
    pub(super) fn of(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(Self::NULL),
            Value::Bool(b) => Some(Self::boolean(*b)),
            Value::Float(x) => Some(Self::float(*x)),
            Value::Int(n) => {
                let n = n.as_ref().as_i64()?;
                let packed = Self(INT | (n.cast_unsigned() & !TAG));
                (packed.as_ref().as_i64() == Some(n)).then_some(packed)
            }
            Value::Str(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    pub(super) fn as_ref(self) -> ValueRef<'static> {
        match self.0 & TAG {
            INT => ValueRef::Int(IntRef::from((self.0 << 16).cast_signed() >> 16)),
            NULL => ValueRef::Null,
            BOOL => ValueRef::Bool(self.0 & 1 == 1),
            _ => ValueRef::Float(f64::from_bits(self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_as_it_was() {
        for value in [
            Value::Null,
            Value::from(true),
            Value::from(false),
            Value::from(0_i64),
            Value::from(-1_i64),
            Value::from(u32::MAX),
            Value::from((1_i64 << 47) - 1),
            Value::from(-(1_i64 << 47)),
            Value::from(-0.0),
            Value::from(0.5),
            Value::from(f64::NAN),
            Value::from(f64::from_bits(INT | 7)),
            Value::from(f64::NEG_INFINITY),
            Value::from(-f64::MAX),
        ] {
            let packed = Scalar::of(&value).expect("packable");
            assert!(packed.as_ref() == value.as_ref(), "{value:?} became {:?}", packed.as_ref());
        }
        for value in [Value::from(1_i64 << 47), Value::from(-(1_i64 << 47) - 1), Value::from(u64::MAX), Value::from("")]
        {
            assert!(Scalar::of(&value).is_none(), "{value:?}");
        }
    }
}
