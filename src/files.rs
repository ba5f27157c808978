//! Files: written beside their place and renamed, errors that name the path.

use std::fmt;
use std::fs;
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
    let folder = path.parent().unwrap_or(Path::new("."));
    let file = tempfile::NamedTempFile::new_in(folder).map_err(|e| error(folder, e))?;
    fs::write(file.path(), bytes).map_err(|e| error(path, e))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644));
    }
    file.persist(path).map_err(|e| error(path, e.error))?;
    Ok(())
}
