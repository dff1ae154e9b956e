//! What addresses in a corpus must be, so that no later phase fails on one.

use std::net::{Ipv4Addr, Ipv6Addr};

/// What is wrong with an address of one of these schemes, as the end of a sentence.
///
/// `file` addresses name a folder by its absolute path, the others a host, with a port and a path or without.
pub(crate) fn fault(url: &str, schemes: &[&str]) -> Option<String> {
    let (last, first) = schemes.split_last()?;
    let Some((scheme, rest)) = url.split_once("://") else {
        let wanted = first.iter().map(|scheme| format!("{scheme}://, ")).collect::<String>();
        let wanted = wanted.trim_end_matches(", ");
        return Some(format!("has no scheme: write {wanted} or {last}://"));
    };
    if !schemes.contains(&scheme) {
        return Some(format!("has another scheme than {} or {last}", first.join(", ")));
    }
    if url.chars().any(|character| character.is_control() || character.is_whitespace() || character == '\\') {
        return Some("holds a blank, backslash or control character".into());
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Some("holds user information, and credentials have no place in a corpus".into());
    }
    let what = if scheme == "file" {
        match (authority, rest.trim_matches('/')) {
            ("", "") => "names no folder",
            ("", _) => return None,
            _ => "is no file:// and an absolute path, as in file:///srv/repos",
        }
    } else if authority.is_empty() {
        "names no host"
    } else if rest.contains(['?', '#']) {
        "holds a query or fragment (? or #), behind which no path can be put"
    } else if !is_host_and_port(authority) {
        "names no host that can be asked: HOST or HOST:PORT, an IPv6 address in brackets"
    } else {
        return None;
    };
    Some(what.into())
}

fn is_host_and_port(authority: &str) -> bool {
    let (host_fits, rest) = match authority.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, rest))) => (host.parse::<Ipv6Addr>().is_ok(), rest),
        Some(None) => return false,
        None => {
            let end = authority.find(':').unwrap_or(authority.len());
            (is_host(&authority[..end]), &authority[end..])
        }
    };
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let port_fits = rest.is_empty()
        || rest.strip_prefix(':').is_some_and(|port| digits(port) && port.parse::<u16>().is_ok_and(|port| port > 0));
    host_fits && port_fits
}

fn is_host(host: &str) -> bool {
    let allowed = |character: char| character.is_alphanumeric() || "-._~".contains(character);
    let last = host.strip_suffix('.').unwrap_or(host).rsplit('.').next().unwrap_or_default();
    // What ends in a number is read as an address of four.
    let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    !last.is_empty() && host.chars().all(allowed) && (!is_number || host.parse::<Ipv4Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn what_later_phases_cannot_use_is_told() {
        let told = |url: &str| fault(url, &["http", "https", "file"]).unwrap_or_default();
        for url in [
            "http://h",
            "http://git.invalid:3000/",
            "https://h/a/b//",
            "file:///srv/repos",
            "http://127.0.0.1:80",
            "http://[::1]:8080/x",
            "https://bücher.example",
            "http://h_1.local",
        ] {
            assert_eq!(told(url), "", "{url}");
        }
        let wrong = [
            ("file://rel", "absolute path"),
            ("file://host/x", "absolute path"),
            ("file:///", "names no folder"),
            ("file://", "names no folder"),
            ("http://", "names no host"),
            ("http:///x", "names no host"),
            ("http://h?x=1", "query or fragment"),
            ("http://h/a?b", "query or fragment"),
            ("http://h#f", "query or fragment"),
            ("http://h:abc", "no host that can be asked"),
            ("http://h:", "no host that can be asked"),
            ("http://h:0", "no host that can be asked"),
            ("http://h:65536", "no host that can be asked"),
            ("http://h:+1", "no host that can be asked"),
            ("http://[::1", "no host that can be asked"),
            ("http://[::1]x", "no host that can be asked"),
            ("http://1.2.3.400", "no host that can be asked"),
            ("http://a|b", "no host that can be asked"),
            ("http://.", "no host that can be asked"),
            ("http://a\\b", "backslash"),
            ("http://u:secret@h", "user information"),
            ("ssh://h", "another scheme than http, https or file"),
            ("///", "has no scheme: write http://, https:// or file://"),
            ("git.invalid", "has no scheme"),
        ];
        for (url, words) in wrong {
            assert!(told(url).contains(words), "{url}: {}", told(url));
        }
        assert_eq!(fault("/", &["http", "https"]).as_deref(), Some("has no scheme: write http:// or https://"));
        assert!(fault("file:///x", &["http", "https"]).is_some());
    }
}
