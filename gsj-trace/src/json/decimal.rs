//! Decimal fractions to doubles, for numbers of the size that logprobs have.

/// The most decimal places that [`fraction`] takes: 5^27 is the largest power of five below 2^63.
const MOST_PLACES: usize = 27;

/// For each number of places `k`, `2^(127 + bits) / 5^k` rounded down, and `bits`, the bit length
/// of `5^k`. Every entry but the first lies in `2^127..2^128`.
static RECIPROCALS: [(u128, u32); MOST_PLACES + 1] = {
    let mut table = [(0, 1); MOST_PLACES + 1];
    let mut five = 1_u128;
    let mut places = 1;
    while places <= MOST_PLACES {
        five *= 5;
        let bits = 128 - five.leading_zeros();
        // Long division, one bit of the dividend at a time: it is a one and 127 + bits zeros.
        let (mut quotient, mut rest) = (0_u128, 1_u128);
        let mut zeros = 127 + bits;
        while zeros > 0 {
            rest *= 2;
            quotient *= 2;
            if rest >= five {
                rest -= five;
                quotient += 1;
            }
            zeros -= 1;
        }
        table[places] = (quotient, bits);
        places += 1;
    }
    table
};

/// `digits / 10^places` correctly rounded, where 192 bits are enough to tell; the caller has a
/// slower way for the rest.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "rounding to nearest is what is asked for")]
pub(super) fn fraction(digits: u64, places: usize) -> Option<f64> {
    if digits == 0 || places == 0 {
        return Some(digits as f64);
    }
    let (reciprocal, bits) = *RECIPROCALS.get(places)?;
    // With m = digits * 2^shift in 2^63..2^64 and R the reciprocal before it was rounded down, the
    // value is m * R * 2^-(shift + places + 127 + bits). `product` is m times the table's entry over
    // 2^64, rounded down. The first rounding takes something, as five divides no power of two, but
    // less than m / 2^64 < 1, and the second less than 1: the exact product lies between product and
    // product + 2, both excluded. It has 127 bits or 128.
    let shift = digits.leading_zeros();
    let m = u128::from(digits << shift);
    let product = m * (reciprocal >> 64) + ((m * (reciprocal & u128::from(u64::MAX))) >> 64);
    let (upper, lower) = halves(product);
    // The upper 53 bits are the mantissa, what is below decides on rounding up. Where product + 1 is
    // the middle, the exact product may be it or lie on either side: another way must tell.
    let below = 11 - upper.leading_zeros();
    let middle = 1 << (below - 1);
    if lower == u64::MAX && (upper + 1) & (2 * middle - 1) == middle {
        return None;
    }
    let mantissa = (upper >> below) + (upper >> (below - 1) & 1);
    // The exponent of the mantissa's last bit is 64 + below + 64 - (shift + places + 127 + bits), at
    // least -142: the value is a normal double. A mantissa of 2^53 carries into the exponent.
    let exponent = u64::from(1075 + 1 + below - shift - bits) - places as u64;
    Some(f64::from_bits(((exponent - 1) << 52) + mantissa))
}

#[expect(clippy::cast_possible_truncation, reason = "it is taken apart")]
fn halves(x: u128) -> (u64, u64) {
    ((x >> 64) as u64, x as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_left_to_the_slower_way() {
        // 2^53 + 1 and a half, as 9007199254740993.5: exactly between two doubles two apart is
        // ...993, so write that with one place.
        assert_eq!(fraction(90_071_992_547_409_930, 1), None);
        assert_eq!(fraction(90_071_992_547_409_931, 1), Some(9_007_199_254_740_994.0));
        assert_eq!(fraction(90_071_992_547_409_929, 1), Some(9_007_199_254_740_992.0));
    }

    #[test]
    fn exact_values_and_the_edges_of_the_table() {
        assert_eq!(fraction(5, 1), Some(0.5));
        assert_eq!(fraction(3125, 5), Some(0.03125));
        assert_eq!(fraction(1, 27), Some(1e-27));
        assert_eq!(fraction(u64::MAX, 27), Some(1.844_674_407_370_955_2e-8));
        assert_eq!(fraction(u64::MAX, 1), Some(1.844_674_407_370_955_2e18));
        assert_eq!(fraction(1, 28), None);
        assert_eq!(fraction(0, 400), Some(0.0));
    }
}
