//! Files: written beside their place and renamed, errors that name the path.

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Why a file could not be read or written.
#[derive(Debug)]
pub struct Error {
    /// The file or folder.
    pub path: PathBuf,
    /// What happened.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

/// An error of this file.
pub fn error(path: &Path, message: impl fmt::Display) -> Error {
    Error { path: path.to_owned(), message: message.to_string() }
}

/// Writes a file beside its place and renames it.
///
/// # Errors
/// If it cannot be written.
pub fn write_beside(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    stream_beside(path, |file| file.write_all(bytes).map_err(|e| error(path, e)))
}

/// Writes a file bit by bit, beside its place, and renames it.
///
/// # Errors
/// If it cannot be written, or `write` says so; then nothing is left.
pub fn stream_beside<T>(
    path: &Path,
    write: impl FnOnce(&mut fs::File) -> Result<T, Error>,
) -> Result<T, Error> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|e| error(folder, e))?;
    let written = write(file.as_file_mut())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644));
    }
    file.persist(path).map_err(|e| error(path, e.error))?;
    Ok(written)
}
