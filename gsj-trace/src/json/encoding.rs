//! Bytes to text, for the inputs that are not plain UTF-8.
//!
//! Python's reader guesses UTF-16 and UTF-32 from the place of the zero bytes and lets surrogates
//! through in every encoding. No body may be lost for that, so ours does too, off the fast path.

use super::ReadError;

/// The text of a document in generalised UTF-8 when it has to be converted; `None` when the
/// bytes are to be read as they are.
pub(super) fn convert(bytes: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
    let decode: fn(&[u8]) -> Result<Vec<u8>, usize> = match bytes {
        [0x00, 0x00, 0xfe, 0xff, ..] => |b| wide(&b[4..], u32::from_be_bytes),
        [0xff, 0xfe, 0x00, 0x00, ..] => |b| wide(&b[4..], u32::from_le_bytes),
        [0xfe, 0xff, ..] => |b| units(&b[2..], u16::from_be_bytes),
        [0xff, 0xfe, ..] => |b| units(&b[2..], u16::from_le_bytes),
        [0x00, 0x00, _, _, ..] => |b| wide(b, u32::from_be_bytes),
        [0x00, _, _, _, ..] | [0x00, _] => |b| units(b, u16::from_be_bytes),
        [_, 0x00, 0x00, 0x00, ..] => |b| wide(b, u32::from_le_bytes),
        [_, 0x00, _, _, ..] | [_, 0x00] => |b| units(b, u16::from_le_bytes),
        _ => return Ok(None),
    };
    decode(bytes).map(Some).map_err(|at| ReadError::NotText { at })
}

/// Checks that bytes are UTF-8 except for three-byte surrogates; the error is the offset of the
/// first bad byte.
pub(super) fn check_generalized(bytes: &[u8]) -> Result<(), ReadError> {
    let mut at = 0;
    while let Err(error) = std::str::from_utf8(&bytes[at..]) {
        at += error.valid_up_to();
        match &bytes[at..] {
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => at += 3,
            _ => return Err(ReadError::NotText { at }),
        }
    }
    Ok(())
}

/// UTF-32.
fn wide(bytes: &[u8], unit: fn([u8; 4]) -> u32) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(bytes.len() / 4);
    let (chunks, rest) = bytes.as_chunks::<4>();
    for (at, chunk) in chunks.iter().enumerate() {
        let point = unit(*chunk);
        if point > 0x10_ffff {
            return Err(at * 4);
        }
        push_point(point, &mut out);
    }
    if rest.is_empty() { Ok(out) } else { Err(bytes.len() - rest.len()) }
}

/// UTF-16.
fn units(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(bytes.len());
    let (chunks, rest) = bytes.as_chunks::<2>();
    for decoded in char::decode_utf16(chunks.iter().map(|chunk| unit(*chunk))) {
        push_point(decoded.map_or_else(|lone| u32::from(lone.unpaired_surrogate()), u32::from), &mut out);
    }
    if rest.is_empty() { Ok(out) } else { Err(bytes.len() - rest.len()) }
}

/// Appends a code point in generalised UTF-8.
pub(super) fn push_point(point: u32, bytes: &mut Vec<u8>) {
    match char::from_u32(point) {
        Some(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => {
            // A surrogate: always three bytes, each part below 256.
            let part = |shift: u32, mark: u32| (mark | (point >> shift & 0x3f)).to_le_bytes()[0];
            bytes.extend_from_slice(&[part(12, 0xe0), part(6, 0x80), part(0, 0x80)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Value;

    fn read(bytes: &[u8]) -> Option<String> {
        Value::parse(bytes).ok().map(|value| value.to_json())
    }

    #[test]
    fn other_encodings_are_read_too() {
        let utf16: Vec<u8> = "[\"é😀\"]".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&utf16).as_deref(), Some("[\"é😀\"]"));
        let marked: Vec<u8> = [0xfe, 0xff].into_iter().chain("7".encode_utf16().flat_map(u16::to_be_bytes)).collect();
        assert_eq!(read(&marked).as_deref(), Some("7"));
        assert_eq!(read(&utf16[..utf16.len() - 1]), None, "half a unit");
        assert_eq!(read(&[0, 0, 0, b'7']).as_deref(), Some("7"));
        assert_eq!(read(&[0, 0x11, 0, 0, 0, 0, 0, 0]), None, "beyond Unicode");
    }

    #[test]
    fn raw_surrogates_are_kept_apart() {
        assert_eq!(read(b"\"\xed\xa0\xbd\xed\xb8\x80x\"").as_deref(), Some("\"\\ud83d\\ude00x\""));
        assert_eq!(read(b"{\"\xed\xa0\xbd\":\"\\n\"}").as_deref(), Some("{\"\\ud83d\":\"\\n\"}"));
        for bad in [&b"\"\xff\""[..], b"\"\xc0\x80\"", b"\"\xed\xa0\"", b"\"\xf4\x90\x80\x80\"", b"\"\xed\x7f\x80\""] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
