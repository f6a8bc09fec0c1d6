//! [`binary_kind`]: whether a file is text, told from its first bytes.

/// What kind of binary a file that begins with `head` is; `None` for text.
pub(crate) fn binary_kind(head: &[u8]) -> Option<&'static str> {
    let head = &head[..head.len().min(LOOK)];
    let known =
        MAGIC.iter().find(|(at, magic, _)| head.get(*at..).is_some_and(|h| h.starts_with(magic)));
    let has_nul = memchr::memchr(0, head).is_some();
    // A magic alone proves nothing: text may begin with "MZ" or "GIF8".
    let is_binary = has_nul || (known.is_some() && !is_utf8(head));
    is_binary.then(|| known.map_or("unknown type", |(_, _, kind)| kind))
}

/// Whether it could be UTF-8 that was cut anywhere.
fn is_utf8(head: &[u8]) -> bool {
    std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true)
}

/// Bytes to look at.
const LOOK: usize = 8 * 1024;

/// Offset, bytes, kind.
const MAGIC: &[(usize, &[u8], &str)] = &[
    (0, b"\x89PNG\r\n", "PNG image"),
    (0, b"\xff\xd8\xff", "JPEG image"),
    (0, b"GIF8", "GIF image"),
    (8, b"WEBP", "WebP image"),
    (8, b"WAVE", "WAVE audio"),
    (0, b"\0\0\x01\0", "icon"),
    (0, b"BM", "BMP image"),
    (0, b"%PDF-", "PDF document"),
    (0, b"PK\x03\x04", "ZIP archive or office document"),
    (0, b"\x1f\x8b", "gzip archive"),
    (0, b"BZh", "bzip2 archive"),
    (0, b"\xfd7zXZ\0", "xz archive"),
    (0, b"\x28\xb5\x2f\xfd", "zstd archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (257, b"ustar", "tar archive"),
    (0, b"!<arch>\n", "object archive"),
    (0, b"\x7fELF", "ELF program or library"),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
    (0, b"MZ", "Windows program or library"),
    (0, b"\xca\xfe\xba\xbe", "Java class or universal Mach-O"),
    (0, b"\0asm", "WebAssembly module"),
    (0, b"SQLite format 3\0", "SQLite database"),
    (0, b"PAR1", "Parquet table"),
    (0, b"wOF2", "web font"),
    (0, b"\0\x01\0\0", "TrueType font"),
    (4, b"ftyp", "MP4 video"),
    (0, b"OggS", "Ogg audio"),
    (0, b"fLaC", "FLAC audio"),
    (0, b"ID3", "MP3 audio"),
    (0, b"\xff\xfe", "UTF-16 text; bash with iconv can convert it"),
    (0, b"\xfe\xff", "UTF-16 text; bash with iconv can convert it"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_whatever_it_begins_with() {
        for text in ["", "MZ is a prefix", "GIF8", "%PDF- äöü", "BM", "#!/bin/sh"] {
            assert_eq!(binary_kind(text.as_bytes()), None, "{text}");
        }
        // Latin-1 is text too.
        assert_eq!(binary_kind(b"caf\xe9"), None);
    }

    #[test]
    fn binaries_are_named_where_they_are_known() {
        assert_eq!(binary_kind(b"\x89PNG\r\n\x1a\n\0\0"), Some("PNG image"));
        assert_eq!(binary_kind(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), Some("PDF document"));
        assert_eq!(binary_kind(b"RIFF\0\0\0\0WEBP"), Some("WebP image"));
        assert_eq!(binary_kind(b"a\0b"), Some("unknown type"));
    }

    #[test]
    fn a_character_cut_by_the_look_is_no_sign() {
        let mut text = vec![b'B', b'M'];
        text.resize(LOOK - 1, b'x');
        text.extend("ä".as_bytes());
        assert_eq!(binary_kind(&text), None);
    }
}
