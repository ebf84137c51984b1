"""The directory ``bin`` beside this file holds rackd and rackprobe; ``rackloop.native`` looks for them here."""
