//! Vectors as whole numbers.

/// A direction: each number of an endpoint's vector as a multiple of a 127th of its largest, from -127 to 127.
///
/// A cosine asks for directions only, so nothing but these numbers enters a score, and their products and sums are exact.
/// Scaled by the vector itself: no range is taken from other texts. A quarter of the size of `f32`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector {
    components: Box<[u8]>,
    square: u32,
}

/// The most numbers of a vector: sums of their products stay far within 31 bits.
const MOST_NUMBERS: usize = 1 << 16;

const ONE: f64 = 127.0;

impl Vector {
    /// Takes the numbers of an endpoint; says what is wrong with them.
    ///
    /// # Errors
    /// There are none or too many, one is no finite number, or all are zero.
    pub fn new(numbers: &[f32]) -> Result<Self, String> {
        if numbers.is_empty() || numbers.len() > MOST_NUMBERS {
            return Err(format!("a vector has {} numbers, not 1..{MOST_NUMBERS}", numbers.len()));
        }
        if let Some(at) = numbers.iter().position(|number| !number.is_finite()) {
            return Err(format!("number {at} of a vector is not finite"));
        }
        let largest = numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        if largest == 0.0 {
            return Err("a vector is all zeros".to_owned());
        }
        let step = f64::from(largest);
        // Within -127..127 as no number is larger than the largest.
        let whole = |number: &f32| (f64::from(*number) / step * ONE).round() as i8;
        let components: Box<[u8]> = numbers.iter().map(|number| whole(number).cast_unsigned()).collect();
        let square = dot(&components, &components).unsigned_abs();
        Ok(Self { components, square })
    }

    /// How many numbers there are.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.components.len()
    }

    pub(super) fn components(&self) -> &[u8] {
        &self.components
    }

    pub(super) fn square(&self) -> u32 {
        self.square
    }
}

/// The sum of the products of two rows of signed bytes. Exact: at most 2^16 products below 2^14.
fn dot(a: &[u8], b: &[u8]) -> i32 {
    let product = |(a, b): (&u8, &u8)| i32::from(i16::from(a.cast_signed()) * i16::from(b.cast_signed()));
    a.iter().zip(b).map(product).sum()
}

/// The cosine between a row and a query of as many numbers.
pub(super) fn cosine(row: &[u8], square: u32, query: &Vector) -> f64 {
    let lengths = f64::from(square) * f64::from(query.square);
    if lengths > 0.0 { f64::from(dot(row, &query.components)) / lengths.sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_direction_is_refused() {
        for bad in [&[][..], &[0.0, -0.0], &[1.0, f32::NAN], &[f32::INFINITY]] {
            assert!(Vector::new(bad).is_err(), "{bad:?}");
        }
        assert!(Vector::new(&vec![1.0; MOST_NUMBERS + 1]).is_err());
        assert!(Vector::new(&[f32::MIN_POSITIVE / 4.0]).is_ok(), "the smallest is scaled up");
        let full = Vector::new(&vec![f32::MAX; MOST_NUMBERS]).expect("no overflow");
        assert_eq!(full.square, 127 * 127 * 65_536);
    }

    proptest! {
        /// Rounding moves a cosine of many numbers by little, and length plays no part.
        #[test]
        fn cosines_are_kept(
            a in proptest::collection::vec(-1.0_f32..1.0, 384),
            b in proptest::collection::vec(-1.0_f32..1.0, 384),
            times in 0.001_f32..1000.0,
        ) {
            let exact = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
            let wanted = exact(&a, &b) / (exact(&a, &a) * exact(&b, &b)).sqrt();
            let scaled: Vec<f32> = a.iter().map(|number| number * times).collect();
            let (a, b) = (Vector::new(&scaled).expect("finite"), Vector::new(&b).expect("finite"));
            let kept = cosine(a.components(), a.square(), &b);
            prop_assert!((kept - wanted).abs() < 2e-3, "{kept} {wanted}");
            prop_assert_eq!(cosine(a.components(), a.square(), &a), 1.0);
        }
    }
}
