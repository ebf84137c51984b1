//! Sanitize methods.

use serde::{Deserialize, Serialize};

/// A way to erase a whole drive, as the ATA, SCSI and NVMe sanitize commands name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SanitizeMethod {
    /// Every block of flash is erased.
    BlockErase,
    /// The encryption key of the media is destroyed.
    CryptoErase,
    /// Every sector is written.
    Overwrite,
}

impl SanitizeMethod {
    /// The methods a drive offers, the preferred one first.
    #[must_use]
    pub fn offered(is_rotational: bool) -> &'static [Self] {
        if is_rotational {
            &[Self::Overwrite]
        } else {
            &[Self::BlockErase, Self::CryptoErase]
        }
    }
}
